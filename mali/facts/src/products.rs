// SPDX-License-Identifier: MIT OR Apache-2.0
//! GPUs that can be modelled, and boards.

use crate::registers::GpuId;

use crate::Architecture;
use crate::profile::{Profile, Source};

const V7: Profile = Profile {
    name: "",
    source: Source::BootLog(""),
    architecture: Architecture::V7,
    gpu_id: GpuId(0),
    l2_features: 0x0711_0206,
    core_features: 0,
    tiler_features: 0x809,
    mem_features: 1,
    mmu_features: 0x2830,
    as_present: 0xff,
    js_present: 7,
    max_threads: 0x300,
    max_workgroup_size: 0x180,
    max_barrier_size: 0x180,
    thread_features: 0x0a04_6000,
    texture_features: [0, 0x0000_ffff, 0x9f81_ffff, 0],
    js_features: [0x20e, 0x4fe, 0x7e],
    shader_present: 3,
    tiler_present: 1,
    l2_present: 1,
    coherency_features: 1,
    afbc_features: 1,
};

const V6: Profile = Profile {
    architecture: Architecture::V6,
    max_threads: 0x180,
    texture_features: [0, 0x00ff_0fff, 0xfe3f_ffff, 0],
    ..V7
};

const G71: Profile = Profile {
    name: "g71",
    source: Source::Silicon,
    gpu_id: GpuId(0x60a0_0002),
    l2_features: 0x0713_0206,
    mem_features: 0x101,
    texture_features: [0xffff_ffff, 0x00ff_0fff, 0xfe3f_ffff, 0],
    shader_present: 0xff,
    coherency_features: 3,
    ..V6
};

const G31: Profile = Profile {
    name: "g31",
    source: Source::BootLog("Allwinner H616"),
    gpu_id: GpuId(0x7093_0000),
    l2_features: 0x0710_0206,
    tiler_features: 0x209,
    mmu_features: 0x2821,
    shader_present: 1,
    ..V7
};

// CORE_FEATURES counts execution engines here; S922X's G52 says 0, with six in two cores.
const G52_R1: Profile = Profile {
    name: "g52-r1",
    source: Source::BootLog("Rockchip RK3566"),
    gpu_id: GpuId(0x7402_1000),
    core_features: 2,
    tiler_features: 0x209,
    mmu_features: 0x2823,
    shader_present: 1,
    ..V7
};

const V9: Profile = Profile {
    architecture: Architecture::V9,
    max_threads: 0x400,
    max_workgroup_size: 0x200,
    max_barrier_size: 0x200,
    ..V7
};

const G57: Profile = Profile {
    name: "g57",
    source: Source::BootLog("MediaTek MT8390"),
    gpu_id: GpuId(0x9093_0000),
    l2_features: 0x0813_0206,
    shader_present: 0x1_0005,
    ..V9
};

/// A board, or several boards' chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Board {
    /// Command-line name: `odroid-n2-plus`.
    pub name: &'static str,
    /// Profile's name.
    pub profile: &'static str,
    /// How its GPU is known.
    pub source: &'static str,
}

const fn board(name: &'static str, profile: &'static str, source: &'static str) -> Board {
    Board {
        name,
        profile,
        source,
    }
}

/// With a GPU of [`PROFILES`].
pub static BOARDS: &[Board] = &[
    board(
        "odroid-n2-plus",
        "g52",
        "S922X: its boot log, GPU_ID 7212, SHADER_PRESENT 3",
    ),
    board(
        "khadas-vim3",
        "g52",
        "A311D: boot log, Linux 6.17, the same values as S922X",
    ),
    board("rk3566", "g52-r1", "boot log, armbian/linux-rockchip 103"),
    board("rk3568", "g52-r1", "boot log, armbian/linux-rockchip 103"),
    board(
        "genio-350",
        "g52-r1-mt8365",
        "MT8365: boot log, dri-devel, October 2025",
    ),
    board("h616", "g31", "boot log, patches for its device tree"),
    board(
        "khadas-vim3l",
        "g31",
        "S905X3: boot log, Linux 5.10, the same values as H616",
    ),
    board(
        "rzg2l",
        "g31-rzg2l",
        "boot log, the maker's page on Panfrost",
    ),
    board(
        "genio-700",
        "g57",
        "MT8390: boot log, GPU_ID 9093, SHADER_PRESENT 10005",
    ),
    board(
        "genio-510",
        "g57-mt8370",
        "MT8370: boot log, patches for its device tree",
    ),
    board(
        "genio-1200",
        "g57-mt8395",
        "MT8395: boot log, patches for its device tree",
    ),
    board(
        "mt8192",
        "g57-mt8192",
        "boot log of a Google Spherion, KernelCI, March 2025",
    ),
    board("a523", "g57-r0p1", "boot log, patches for its device tree"),
    board("mt8183", "g72", "boot log, patches for Linux 5.7"),
    board(
        "hikey960",
        "g71",
        "registers of silicon, in the recordings of the original GPUReplay",
    ),
];

/// All that can be modelled.
pub static PROFILES: &[Profile] = &[
    Profile {
        name: "g52",
        source: Source::BootLog("Amlogic S922X"),
        gpu_id: GpuId(0x7212_0000),
        ..V7
    },
    G52_R1,
    Profile {
        name: "g52-r1-mt8365",
        source: Source::BootLog("MediaTek MT8365"),
        core_features: 3,
        ..G52_R1
    },
    G31,
    Profile {
        name: "g31-rzg2l",
        source: Source::BootLog("Renesas RZ/G2L"),
        l2_features: 0x070d_0206,
        ..G31
    },
    Profile {
        name: "g76",
        source: Source::BootLog("HiSilicon Kirin 990"),
        gpu_id: GpuId(0x7211_0000),
        l2_features: 0x0713_0206,
        mem_features: 0x301,
        shader_present: 0xffff,
        l2_present: 1,
        ..V7
    },
    Profile {
        name: "g72",
        source: Source::BootLog("MediaTek MT8183"),
        gpu_id: GpuId(0x6221_0030),
        l2_features: 0x0712_0206,
        shader_present: 7,
        ..V6
    },
    G71,
    G57,
    Profile {
        name: "g57-mt8370",
        source: Source::BootLog("MediaTek MT8370"),
        shader_present: 5,
        ..G57
    },
    Profile {
        name: "g57-mt8192",
        source: Source::BootLog("MediaTek MT8192"),
        l2_features: 0x0713_0206,
        mem_features: 0x101,
        shader_present: 0x5_0045,
        ..G57
    },
    // The id that Linux prints; with Arm's driver it is 9091, says the maker.
    Profile {
        name: "g57-mt8395",
        source: Source::BootLog("MediaTek MT8395"),
        gpu_id: GpuId(0x9093_0010),
        l2_features: 0x0712_0206,
        mem_features: 0x301,
        shader_present: 0x5_0045,
        ..G57
    },
    // Arm's id of a G57; Linux gives both the same settings.
    Profile {
        name: "g57-r0p1",
        source: Source::BootLog("Allwinner A523"),
        gpu_id: GpuId(0x9091_0010),
        shader_present: 1,
        ..V9
    },
    // The recorded G71 says product 0x60a0, architecture 6.0.10. Mesa knows only 0x6000 (`panfrost_model_list`);
    // Linux masks the revision and accepts both.
    Profile {
        name: "g71-mesa",
        source: Source::DriverTable("Mesa"),
        gpu_id: GpuId(0x6000_0002),
        ..G71
    },
];

pub(crate) fn without_family(name: &str) -> &str {
    match name.split_at_checked(5) {
        Some((family, product)) if family.eq_ignore_ascii_case("mali-") => product,
        _ => name,
    }
}

impl Profile {
    /// GPU (`g52`, any case, also with `mali-`) or board (`odroid-n2-plus`).
    pub fn by_name(name: &str) -> Option<&'static Profile> {
        let product = without_family(name);
        let named = |name: &str| {
            PROFILES
                .iter()
                .find(|profile| profile.name.eq_ignore_ascii_case(name))
        };
        named(product).or_else(|| {
            let board = BOARDS
                .iter()
                .find(|board| board.name.eq_ignore_ascii_case(name))?;
            named(board.profile)
        })
    }

    /// Names for [`Profile::by_name`], products first.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let boards = BOARDS.iter().map(|board| board.name);
        PROFILES.iter().map(|profile| profile.name).chain(boards)
    }

    /// GPU_ID's upper half, without minor revision.
    pub fn by_product(product: u16) -> Option<&'static Profile> {
        let model = |product: u16| product & 0xf00f;
        PROFILES
            .iter()
            .find(|profile| profile.gpu_id.product() == product)
            .or_else(|| {
                PROFILES
                    .iter()
                    .find(|profile| model(profile.gpu_id.product()) == model(product))
            })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::format;

    use crate::registers::gpu;

    use super::*;

    #[test]
    fn profiles_are_found() {
        for profile in PROFILES {
            assert_eq!(
                Profile::by_name(profile.name).unwrap().gpu_id,
                profile.gpu_id
            );
            let product = profile.gpu_id.product();
            let found = Profile::by_product(product).unwrap();
            assert_eq!(found.gpu_id.product(), product);
            assert!(
                profile
                    .gpu_id
                    .name()
                    .unwrap()
                    .to_lowercase()
                    .ends_with(profile.name.split('-').next().unwrap())
            );
        }
        assert_eq!(Profile::by_name("Mali-G52").unwrap().name, "g52");
        assert_eq!(Profile::by_product(0x7402).unwrap().name, "g52-r1");
        assert_eq!(Profile::by_product(0x7502).unwrap().name, "g52");
        assert_eq!(Profile::by_product(0x60a0).unwrap().name, "g71");
        assert_eq!(Profile::by_product(0x6010).unwrap().name, "g71");
        assert_eq!(Profile::by_product(0x6000).unwrap().name, "g71-mesa");
        assert!(Profile::by_name("g77").is_none() && Profile::by_product(0x9000).is_none());
        let g57 = Profile::by_product(0x9093).unwrap();
        assert_eq!((g57.name, g57.gpu_id.name()), ("g57", Some("Mali-G57")));
        let genio = Profile::by_name("genio-1200").unwrap();
        assert_eq!(format!("{}", genio.gpu_id), "Mali-G57 r0p1");
        let one_core = Profile::by_product(0x9091).unwrap();
        assert_eq!(one_core.name, "g57-r0p1");
        assert_eq!(format!("{}", one_core.gpu_id), "Mali-G57 r0p1");
        assert_eq!(g57.architecture.warp_lanes(), 16);
        assert!(g57.architecture.has_resource_tables() && !g57.architecture.has_clauses());
    }

    #[test]
    fn every_value_has_a_source() {
        let g71 = Profile::by_name("g71").unwrap();
        let recorded: HashMap<u32, u32> = g71.identity().collect();
        for profile in PROFILES {
            for (register, value) in profile.identity() {
                let name = format!("{} {register:#x}", profile.name);
                match profile.source_of(register) {
                    Source::Silicon | Source::Nearest(_) => {
                        assert_eq!(recorded.get(&register), Some(&value), "{name}");
                    }
                    Source::BootLog(board) => {
                        assert_eq!(profile.source, Source::BootLog(board), "{name}");
                    }
                    Source::DriverTable(_) => assert_eq!(register, gpu::GPU_ID, "{name}"),
                    // Mesa, `panfrost_max_thread_count`: with half of the registers; on Valhall a group with all
                    // fits.
                    Source::DriverDefault(_) => {
                        let valhall = profile.architecture.has_resource_tables();
                        let expected = match (valhall, register) {
                            (false, gpu::THREAD_MAX_THREADS) => 768,
                            (true, gpu::THREAD_MAX_THREADS) => 1024,
                            (true, gpu::THREAD_MAX_WORKGROUP_SIZE) => 512,
                            (true, gpu::THREAD_MAX_BARRIER_SIZE) => 512,
                            _ => panic!("{name} {register:#x} is no default of Mesa"),
                        };
                        assert_eq!(value, expected, "{name}");
                    }
                    Source::Model(why) => assert!(!why.is_empty(), "{name}"),
                }
            }
        }
    }

    #[test]
    fn boards_are_found() {
        for board in BOARDS {
            let profile = Profile::by_name(board.name).unwrap();
            assert_eq!(profile.name, board.profile, "{}", board.name);
            assert!(PROFILES.iter().all(|profile| profile.name != board.name));
            assert!(!board.source.is_empty());
        }
        let rk3566 = Profile::by_name("RK3566").unwrap();
        assert_eq!((rk3566.gpu_id.major(), rk3566.core_id_range()), (1, 1));
        assert_eq!(
            std::string::ToString::to_string(&rk3566.gpu_id),
            "Mali-G52 r1p0"
        );
        assert_eq!(Profile::names().count(), PROFILES.len() + BOARDS.len());
    }

    #[test]
    fn core_ids() {
        assert_eq!(Profile::by_name("g52").unwrap().core_id_range(), 2);
        assert_eq!(Profile::by_name("g76").unwrap().core_id_range(), 16);
    }
}
