/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What OP-TEE's loader must know of the trusted application. */
#ifndef USER_TA_HEADER_DEFINES_H
#define USER_TA_HEADER_DEFINES_H

#include "gpureplay_tee.h"

#define TA_UUID GPUREPLAY_TA_UUID
#define TA_FLAGS TA_FLAG_EXEC_DDR
#define TA_STACK_SIZE (16 * 1024)
/* A pack or two blocks of tensors. Two instances fit into the 7 MiB that QEMU's OP-TEE has for applications. */
#define TA_DATA_SIZE (5 * 512 * 1024)
#define TA_VERSION "0.1"
#define TA_DESCRIPTION "Replays signed recordings of GPU work"

#endif
