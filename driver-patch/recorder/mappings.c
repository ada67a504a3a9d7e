// SPDX-License-Identifier: GPL-2.0
/*
 * The driver's own announcements of what it maps: for people who read a trace.
 * What is really mapped is what walk.c finds.
 */
#include <linux/export.h>

#include "recorder.h"

static void log_mapping(enum gpureplay_record_type type, int as, u32 flags,
			u64 va, u64 size)
{
	struct gpureplay_mapping record = {
		.as = cpu_to_le32(as < 0 ? GPUREPLAY_AS_NONE : as),
		.flags = cpu_to_le32(flags),
		.va = cpu_to_le64(va),
		.size = cpu_to_le64(size),
	};

	if (gpureplay_is_recording())
		log_record(type, 0, &record, sizeof(record));
}

void gpureplay_map(int as, u32 flags, u64 va, u64 size)
{
	log_mapping(GPUREPLAY_MAP, as, flags, va, size);
}
EXPORT_SYMBOL_GPL(gpureplay_map);

void gpureplay_unmap(int as, u32 flags, u64 va, u64 size)
{
	log_mapping(GPUREPLAY_UNMAP, as, flags, va, size);
}
EXPORT_SYMBOL_GPL(gpureplay_unmap);
