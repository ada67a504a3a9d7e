/* SPDX-License-Identifier: GPL-2.0 */
/* What Arm's driver asks its platform for: nothing. */
#define POWER_MANAGEMENT_CALLBACKS (NULL)
#define PLATFORM_FUNCS (NULL)
#define CLK_RATE_TRACE_OPS (NULL)
