/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Where the GPU and its memory are: QEMU's machine `virt` with the model as the function in PCI slot 1. */
#ifndef GPUREPLAY_BOARD_H
#define GPUREPLAY_BOARD_H

/* The 32-bit window of the PCI host: the function's BAR 0, as tools/guest/gpu.dtso has it too. */
#define GPUREPLAY_GPU_BASE 0x10000000
#define GPUREPLAY_GPU_BYTES 0x10000
/* Configuration space of slot 1 of bus 0 (ECAM above 4 GiB), and what is used of it. */
#define GPUREPLAY_CONFIGURATION 0x4010008000
#define GPUREPLAY_PCI_COMMAND 0x04
#define GPUREPLAY_PCI_MEMORY_AND_MASTER 0x6
#define GPUREPLAY_PCI_BAR0 0x10
/* Pages for the GPU: normal memory that the device tree reserves. A board takes memory that its TZASC closes. */
#define GPUREPLAY_CARVE_OUT 0xb0000000
#define GPUREPLAY_CARVE_OUT_BYTES 0x04000000
/* Time between two looks at a GPU that works, in microseconds. */
#define GPUREPLAY_POLL_US 50u

#endif
