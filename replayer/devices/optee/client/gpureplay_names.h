/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The names behind the codes of refusals: sections (status 1) and rules (status 2). A test of gpureplay-library compares them. */
#ifndef GPUREPLAY_NAMES_H
#define GPUREPLAY_NAMES_H

static const char *const gpureplay_sections[] = {
	"header",
	"identity",
	"regions",
	"segments",
	"actions",
	"tensors",
	"pieces",
	"axes",
	"strings",
	"data",
};

static const char *const gpureplay_rules[] = {
	"region-shape",
	"region-range",
	"regions-disjoint",
	"write-xor-execute",
	"region-kind",
	"memory-limit",
	"identity-register",
	"identity-product",
	"tensor-shape",
	"tensor-tables",
	"tensor-elements",
	"tensor-overlap",
	"tensor-region",
	"segment-table",
	"segment-order",
	"action-form",
	"upload-data",
	"upload-region",
	"register-write",
	"register-write-order",
	"bounded-wait",
	"total-time",
	"total-bytes",
	"job-header",
	"job-configuration",
	"job-restored",
	"job-submitted",
	"bound-tensor",
	"family",
};

#endif
