// SPDX-License-Identifier: MIT OR Apache-2.0
// What the Arm Compute Library programs share: options, and .npy files to and from OpenCL tensors.
#pragma once

#include <arm_compute/runtime/CL/CLScheduler.h>
#include <arm_compute/runtime/CL/CLTensor.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "npy.h"

namespace acl {

// The value of an option, or the fallback; without either, prints the usage text and exits.
inline std::string option(int argc, char **argv, const char *name, const char *usage, const char *fallback = nullptr)
{
	for (int i = 1; i + 1 < argc; i += 2)
		if (!std::strcmp(argv[i], name))
			return argv[i + 1];
	if (fallback)
		return fallback;
	std::fprintf(stderr, "%s is missing\nusage: %s\n", name, usage);
	std::exit(2);
}

// The library's shapes have the innermost dimension first, NumPy's the outermost.
inline arm_compute::TensorShape shape(const std::vector<size_t> &numpy)
{
	arm_compute::TensorShape shape;
	for (size_t i = 0; i < numpy.size(); i++)
		shape.set(i, numpy[numpy.size() - 1 - i], false);
	return shape;
}

// Byte offset of each element of a tensor in NumPy's order; the library pads rows as its kernels like them.
template <typename Visit> void each_element(const arm_compute::ITensorInfo &info, Visit visit)
{
	const arm_compute::TensorShape &extents = info.tensor_shape();
	const size_t count = extents.total_size();
	for (size_t element = 0; element < count; element++) {
		size_t rest = element, offset = info.offset_first_element_in_bytes();
		for (size_t i = 0; i < extents.num_dimensions(); i++) {
			offset += rest % extents[i] * info.strides_in_bytes()[i];
			rest /= extents[i];
		}
		visit(element, offset);
	}
}

inline void upload(arm_compute::CLTensor &tensor, const npy &array)
{
	tensor.map(true);
	const auto *from = static_cast<const float *>(array.data);
	each_element(*tensor.info(), [&](size_t element, size_t offset) {
		std::memcpy(tensor.buffer() + offset, from + element, sizeof(float));
	});
	tensor.unmap();
}

inline void download(arm_compute::CLTensor &tensor, const std::vector<size_t> &numpy_shape, const std::string &path)
{
	std::vector<float> data(tensor.info()->tensor_shape().total_size());
	tensor.map(true);
	each_element(*tensor.info(), [&](size_t element, size_t offset) {
		std::memcpy(&data[element], tensor.buffer() + offset, sizeof(float));
	});
	tensor.unmap();
	npy array{};
	array.type = 'f';
	array.rank = static_cast<int>(numpy_shape.size());
	for (size_t i = 0; i < numpy_shape.size(); i++)
		array.shape[i] = numpy_shape[i];
	array.count = data.size();
	array.data = data.data();
	npy_write(path.c_str(), &array);
}

// Ends the program when the library says that it cannot do what is asked.
inline void require(const arm_compute::Status &status, const char *what)
{
	if (status.error_code() == arm_compute::ErrorCode::OK)
		return;
	std::fprintf(stderr, "%s: %s\n", what, status.error_description().c_str());
	std::exit(1);
}

} // namespace acl
