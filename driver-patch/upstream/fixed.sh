# SPDX-License-Identifier: GPL-2.0
# What fixed.cocci cannot add: two functions, a flag, a version. Runs in a kernel tree, for `mail`.
driver=drivers/gpu/drm/panfrost

# before FILE PATTERN: puts the text of standard input before the first line that matches.
before() {
	local text
	text=$(cat)
	TEXT=$text perl -0pi -e 's/^(?=\Q'"$2"'\E)/$ENV{TEXT}\n\n/m or die "no line begins with '"$2"'\n"' "$1"
}

before $driver/panfrost_drv.c 'static int panfrost_ioctl_create_bo(' << 'END'
/* An address that user space chooses keeps the rules of the driver's own. */
static bool panfrost_fixed_va_is_valid(const struct drm_panfrost_create_bo *args)
{
	u64 end = args->offset + PAGE_ALIGN((u64)args->size);

	if (!args->offset || !PAGE_ALIGNED(args->offset) || end < args->offset)
		return false;

	/* A heap grows by whole blocks of 2MB. */
	if (args->flags & PANFROST_BO_HEAP)
		return IS_ALIGNED(args->offset, SZ_2M);

	/* See panfrost_gem_open() and panfrost_drm_mm_color_adjust(). */
	return (args->flags & PANFROST_BO_NOEXEC) ||
	       ((args->offset ^ (end - 1)) < SZ_16M &&
		lower_32_bits(args->offset) && lower_32_bits(end));
}
END

before $driver/panfrost_gem.c 'int panfrost_gem_open(' << 'END'
static int panfrost_gem_reserve(struct panfrost_gem_mapping *mapping,
				size_t size, u64 align, unsigned long color)
{
	struct drm_mm_node *node = &mapping->mmnode;
	u64 va = mapping->obj->fixed_va;

	if (!va)
		return drm_mm_insert_node_generic(&mapping->mmu->mm, node,
						  size >> PAGE_SHIFT, align,
						  color, 0);

	node->start = va >> PAGE_SHIFT;
	node->size = size >> PAGE_SHIFT;
	/* What the color stands for was checked when the object was created. */
	node->color = PANFROST_BO_NOEXEC;

	return drm_mm_reserve_node(&mapping->mmu->mm, node);
}
END

# Newer kernels have a list of all flags.
perl -pi -e 's/^(#define PANFROST_BO_FLAGS\t\()/$1PANFROST_BO_FIXED | \\\n\t\t\t\t /' $driver/panfrost_drv.c

# The version, and the list of versions above it.
minor=$(perl -ne 'print $1 if /^\t\.minor\s*= (\d+),/' $driver/panfrost_drv.c)
next=$((minor + 1))
perl -0pi -e "s/^(\\t\\.minor\\s*= )$minor,/\${1}$next,/m; s/^( \\* - 1\\.$minor .*?\n)( \\*\/)/\$1 * - 1.$next - adds PANFROST_BO_FIXED\n\$2/ms" $driver/panfrost_drv.c

# The last of the flags, which are single bits; 4 is taken by a newer kernel.
perl -0pi -e 's/(.*^#define PANFROST_BO_\w+\t\d+\n)/$1\/*\n * With PANFROST_BO_FIXED, the offset is where the object is to lie, in each\n * file that opens it. Creation fails with ENOSPC if something is there.\n *\/\n#define PANFROST_BO_FIXED\t8\n/ms' include/uapi/drm/panfrost_drm.h
