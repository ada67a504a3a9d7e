/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The header's structures lie in memory as the library's do (src/layout.rs has the same numbers). Compiled, never linked. */
#include "gpureplay_bare.h"

#define W sizeof(void *)
#define AT(type, field, offset) _Static_assert(offsetof(struct type, field) == (offset), #type "." #field)

AT(gpureplay_device, context, 0);
AT(gpureplay_device, read32, W);
AT(gpureplay_device, write32, 2 * W);
AT(gpureplay_device, now_us, 3 * W);
AT(gpureplay_device, wait_interrupt, 4 * W);
AT(gpureplay_device, clean, 5 * W);
AT(gpureplay_device, invalidate, 6 * W);
AT(gpureplay_device, arena, 7 * W);
AT(gpureplay_device, arena_bytes, 8 * W);
AT(gpureplay_device, arena_bus, (9 * W + 7) & ~7ul);
AT(gpureplay_device, aarch64_tables, ((9 * W + 7) & ~7ul) + 8);
AT(gpureplay_device, cancelled, ((9 * W + 7) & ~7ul) + 8 + W);
AT(gpureplay_io, index, 0);
AT(gpureplay_io, bytes, W);
AT(gpureplay_io, length, 2 * W);
AT(gpureplay_error, status, 0);
AT(gpureplay_error, code, 4);
AT(gpureplay_error, index, 8);
AT(gpureplay_error, found, 12);
AT(gpureplay_error, value, 16);
_Static_assert(sizeof(struct gpureplay_session) == 36864, "gpureplay_session");
