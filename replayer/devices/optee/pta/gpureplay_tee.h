/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the normal world, the trusted application and the pseudo-TA agree on: identities, commands, the form of tensors. */
#ifndef GPUREPLAY_TEE_H
#define GPUREPLAY_TEE_H

#include <stdint.h>

/* The trusted application, which the normal world opens. */
#define GPUREPLAY_TA_UUID \
	{ 0x3d6f5c1e, 0x7a42, 0x4c0b, { 0x9e, 0x57, 0x21, 0x8d, 0xb4, 0x60, 0xfe, 0x13 } }
/* The pseudo-TA in OP-TEE's core, which only that application may open. */
#define GPUREPLAY_PTA_UUID \
	{ 0x94a1d0b7, 0x52e8, 0x4f36, { 0xa3, 0x0d, 0x6b, 0xc7, 0x19, 0xe2, 0x58, 0x04 } }

/* Commands; the same numbers for the application and the pseudo-TA. */
enum gpureplay_tee_command {
	/* [in] memory: the application takes a signed pack, the pseudo-TA a recording. TEE_ERROR_BUSY: another session has the GPU.
	 * The pseudo-TA: [out] value: a is the status and b the code of an error (gpureplay_bare.h). */
	GPUREPLAY_TEE_LOAD = 0,
	/* [in] memory: a tensor's name, without a final zero. [out] value: a is its index. */
	GPUREPLAY_TEE_FIND = 1,
	/* [in] memory: entries of inputs and weights. [inout] memory: entries of outputs, whose bytes are written.
	 * [out] value: as for LOAD. After an error, and after a cancellation (TEE_ERROR_CANCEL), nothing is loaded any more. */
	GPUREPLAY_TEE_RUN = 2,
	/* Resets the GPU, clears its memory, and lets other sessions have it. Closing the session does the same. */
	GPUREPLAY_TEE_UNLOAD = 3,
	/* The pseudo-TA only: the GPU is the session's until UNLOAD, or TEE_ERROR_BUSY. */
	GPUREPLAY_TEE_TAKE = 4,
};

/* One tensor: this header, `length` bytes (dense, in C order, little-endian), and zeroes up to a multiple of eight.
 * Entries follow one another without a gap. */
struct gpureplay_tee_entry {
	uint32_t index;
	uint32_t length;
};

/* Bounds; the secure world refuses what is beyond. */
#define GPUREPLAY_TEE_TENSORS 32u
#define GPUREPLAY_TEE_NAME_BYTES 256u
#define GPUREPLAY_TEE_RECORDING_BYTES (2u << 20)
#define GPUREPLAY_TEE_TENSOR_BYTES (1u << 20)

#endif
