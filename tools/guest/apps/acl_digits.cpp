// SPDX-License-Identifier: MIT OR Apache-2.0
// Two networks for handwritten digits by Arm Compute Library's graph API: float32, NHWC, one image.
//
// acl_digits --weights folder --input image.npy --output probabilities.npy [--network convolutions|perceptron]
//     folder: LAYER.weight.npy and LAYER.bias.npy of conv1, conv2, conv3 and fc, as tools/digits/train.py writes them,
//             or of fc1 and fc2, as tools/training/data.py does
//     image: 8 x 8, 0 (paper) to 1 (ink),  probabilities: 10
#include <arm_compute/graph.h>

#include <memory>

#include "acl.hpp"

using namespace arm_compute;
using namespace arm_compute::graph;
using namespace arm_compute::graph::frontend;

namespace {

// Fills a tensor from an array. The library calls an accessor when the tensor is mapped.
class FromArray final : public ITensorAccessor {
public:
	explicit FromArray(const npy &array) : array(array) {}

	bool access_tensor(ITensor &tensor) override
	{
		if (tensor.info()->tensor_shape().total_size() != array.count)
			throw std::runtime_error("the library's tensor has another size than the file");
		const auto *from = static_cast<const float *>(array.data);
		acl::each_element(*tensor.info(), [&](size_t element, size_t offset) {
			std::memcpy(tensor.buffer() + offset, from + element, sizeof(float));
		});
		return true;
	}

private:
	npy array;
};

// Writes a tensor to a file.
class ToFile final : public ITensorAccessor {
public:
	ToFile(std::string path, size_t count) : path(std::move(path)), count(count) {}

	bool access_tensor(ITensor &tensor) override
	{
		if (tensor.info()->tensor_shape().total_size() != count)
			throw std::runtime_error("the output has another size than the network's");
		std::vector<float> data(count);
		acl::each_element(*tensor.info(), [&](size_t element, size_t offset) {
			std::memcpy(&data[element], tensor.buffer() + offset, sizeof(float));
		});
		npy array{};
		array.type = 'f';
		array.rank = 1;
		array.shape[0] = array.count = count;
		array.data = data.data();
		npy_write(path.c_str(), &array);
		return false; // one inference
	}

private:
	std::string path;
	size_t count;
};

} // namespace

int main(int argc, char **argv)
try {
	const char *usage = "acl_digits --weights folder --input image.npy --output probabilities.npy [--network convolutions|perceptron]";
	const std::string folder = acl::option(argc, argv, "--weights", usage);
	size_t extents[2] = {8, 8};
	const npy image = npy_read_shape(acl::option(argc, argv, "--input", usage).c_str(), 'f', 2, extents);
	const std::string output = acl::option(argc, argv, "--output", usage);
	const std::string which = acl::option(argc, argv, "--network", usage, "convolutions");
	if (which != "convolutions" && which != "perceptron")
		throw std::runtime_error("no network " + which + "; there are convolutions and perceptron");

	const auto weights = [&](const std::string &name, std::vector<size_t> shape) {
		const std::string path = folder + "/" + name + ".npy";
		const npy array = npy_read_shape(path.c_str(), 'f', static_cast<int>(shape.size()), shape.data());
		return std::make_unique<FromArray>(array);
	};
	const auto convolution = [&](const std::string &name, unsigned int inputs, unsigned int outputs) {
		ConvolutionLayer layer(3, 3, outputs, weights(name + ".weight", {outputs, 3, 3, inputs}),
				       weights(name + ".bias", {outputs}), PadStrideInfo(1, 1, 1, 1));
		layer.set_name(name);
		return layer;
	};
	const auto relu = [] { return ActivationLayer(ActivationLayerInfo(Activation::RELU)); };
	const auto maximum = [] {
		return PoolingLayer(PoolingLayerInfo(PoolingType::MAX, 2, DataLayout::NHWC, PadStrideInfo(2, 2)));
	};
	FullyConnectedLayerInfo in_order;
	in_order.set_weights_trained_layout(DataLayout::NHWC);
	const auto connected = [&](const std::string &name, unsigned int inputs, unsigned int outputs) {
		FullyConnectedLayer layer(outputs, weights(name + ".weight", {outputs, inputs}), weights(name + ".bias", {outputs}),
					  in_order);
		layer.set_name(name);
		return layer;
	};

	const TensorDescriptor pixels(TensorShape(1U, 8U, 8U, 1U), DataType::F32, QuantizationInfo(), DataLayout::NHWC);
	Stream network(0, "digits");
	// Not Winograd: Mesa 25.0's compiler breaks its input transform (docs/internals/testing.md).
	network << Target::CL << arm_compute::graph::ConvolutionMethod::GEMM
		<< InputLayer(pixels, std::make_unique<FromArray>(image));
	if (which == "convolutions")
		network << convolution("conv1", 1, 16) << relu()
			<< convolution("conv2", 16, 32) << relu() << maximum()
			<< convolution("conv3", 32, 32) << relu() << maximum()
			<< connected("fc", 128, 10);
	else
		network << connected("fc1", 64, 64) << relu() << connected("fc2", 64, 10);
	network << SoftmaxLayer() << OutputLayer(std::make_unique<ToFile>(output, 10));
	network.finalize(Target::CL, GraphConfig());
	network.run();
	return 0;
} catch (const std::exception &error) {
	std::fprintf(stderr, "acl_digits: %s\n", error.what());
	return 1;
}
