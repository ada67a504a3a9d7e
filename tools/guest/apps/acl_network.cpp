// SPDX-License-Identifier: MIT OR Apache-2.0
// Any network that is a table of layers, by Arm Compute Library's graph API: NHWC, one image.
//
// acl_network --network network.txt --weights folder --input input.npy --suffix text
//     network.txt: the layers, as tools/networks/networks.py describes and writes them
//     folder: LAYER.weight.npy and LAYER.bias.npy
//     each output layer writes NAMEtext.npy into the current folder
#include <arm_compute/graph.h>
#include <arm_compute/graph/GraphBuilder.h>

#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>

#include "acl.hpp"

using namespace arm_compute;
using namespace arm_compute::graph;
using namespace arm_compute::graph::frontend;

namespace {

// How the elements of a data type are called in .npy files.
struct Kind {
	char letter;
	int size;
};

Kind kind_of(DataType type)
{
	switch (type) {
	case DataType::F32:
		return {'f', 4};
	case DataType::F16:
		return {'f', 2};
	case DataType::QASYMM8:
		return {'u', 1};
	case DataType::S32:
		return {'i', 4};
	default:
		throw std::runtime_error("a tensor has a type that no file has");
	}
}

// Calls `copy(element, offset, count)` for every stretch of elements that lie side by side in the tensor.
template <typename Copy> void each_row(const ITensorInfo &info, Copy copy)
{
	const TensorShape &extents = info.tensor_shape();
	size_t row = 1, dimension = 0;
	while (dimension < extents.num_dimensions() && info.strides_in_bytes()[dimension] == row * info.element_size())
		row *= extents[dimension++];
	for (size_t element = 0; element < extents.total_size(); element += row) {
		size_t rest = element / row, offset = info.offset_first_element_in_bytes();
		for (size_t i = dimension; i < extents.num_dimensions(); i++) {
			offset += rest % extents[i] * info.strides_in_bytes()[i];
			rest /= extents[i];
		}
		copy(element, offset, row);
	}
}

// Fills a tensor from a file when the library maps it, so that only one file is in memory at a time.
class FromFile final : public ITensorAccessor {
public:
	explicit FromFile(std::string path) : path(std::move(path)) {}

	bool access_tensor(ITensor &tensor) override
	{
		const Kind kind = kind_of(tensor.info()->data_type());
		const npy array = npy_read_sized(path.c_str(), kind.letter, kind.size);
		if (tensor.info()->tensor_shape().total_size() != array.count)
			throw std::runtime_error(path + ": the library's tensor has another size than the file");
		const auto *from = static_cast<const char *>(array.data);
		each_row(*tensor.info(), [&](size_t element, size_t offset, size_t count) {
			std::memcpy(tensor.buffer() + offset, from + element * kind.size, count * kind.size);
		});
		std::free(array.data);
		return true;
	}

private:
	std::string path;
};

// Writes a tensor to a file, without its extents of 1 at the outside.
class ToFile final : public ITensorAccessor {
public:
	explicit ToFile(std::string path) : path(std::move(path)) {}

	bool access_tensor(ITensor &tensor) override
	{
		const Kind kind = kind_of(tensor.info()->data_type());
		const TensorShape &extents = tensor.info()->tensor_shape();
		std::vector<char> data(extents.total_size() * kind.size);
		each_row(*tensor.info(), [&](size_t element, size_t offset, size_t count) {
			std::memcpy(data.data() + element * kind.size, tensor.buffer() + offset, count * kind.size);
		});
		npy array{};
		array.type = kind.letter;
		array.size = kind.size;
		int rank = static_cast<int>(extents.num_dimensions());
		while (rank > 1 && extents[rank - 1] == 1)
			rank--;
		for (int i = 0; i < rank; i++)
			array.shape[i] = extents[rank - 1 - i];
		array.rank = rank;
		array.count = extents.total_size();
		array.data = data.data();
		npy_write(path.c_str(), &array);
		return false; // one inference
	}

private:
	std::string path;
};

// One row of the table.
struct Row {
	std::string operation, name;
	std::vector<std::string> inputs;
	std::map<std::string, std::string> numbers;

	const std::string &text(const std::string &key) const
	{
		const auto at = numbers.find(key);
		if (at == numbers.end())
			throw std::runtime_error(name + ": " + key + " is missing");
		return at->second;
	}

	std::vector<unsigned int> list(const std::string &key, size_t count) const
	{
		std::istringstream words(text(key));
		std::vector<unsigned int> out;
		for (std::string word; std::getline(words, word, ',');)
			out.push_back(static_cast<unsigned int>(std::stoul(word)));
		if (out.size() != count)
			throw std::runtime_error(name + ": " + key + " has another number of extents");
		return out;
	}

	unsigned int number(const std::string &key) const { return list(key, 1)[0]; }
	float real(const std::string &key) const { return std::stof(text(key)); }

	QuantizationInfo quantisation(const std::string &prefix = "") const
	{
		if (!numbers.count(prefix + "scale"))
			return QuantizationInfo();
		return QuantizationInfo(real(prefix + "scale"), std::stoi(text(prefix + "zero")));
	}

	PadStrideInfo steps() const
	{
		const unsigned int stride = number("stride");
		const auto pad = list("pad", 4);
		return PadStrideInfo(stride, stride, pad[0], pad[1], pad[2], pad[3], DimensionRoundingType::FLOOR);
	}

	Size2D kernel() const
	{
		const auto extents = list("kernel", 2);
		return Size2D(extents[1], extents[0]);
	}
};

Row parse(const std::string &line)
{
	Row row;
	std::string inputs, word;
	std::istringstream words(line);
	if (!(words >> row.operation >> row.name >> inputs))
		throw std::runtime_error("not a layer: " + line);
	std::istringstream names(inputs);
	while (std::getline(names, word, ','))
		row.inputs.push_back(word);
	while (words >> word) {
		const size_t equals = word.find('=');
		if (equals == std::string::npos)
			throw std::runtime_error(row.name + ": expected KEY=VALUE, found " + word);
		row.numbers[word.substr(0, equals)] = word.substr(equals + 1);
	}
	return row;
}

// Adds the table's layers to the library's graph.
class Builder {
public:
	Builder(Graph &graph, DataType type, std::string weights, std::string input, std::string suffix)
		: graph(graph), type(type), weights(std::move(weights)), input(std::move(input)), suffix(std::move(suffix))
	{
	}

	void add(const Row &row)
	{
		const NodeID node = row.operation == "input" ? source(row) : layer(row, node_of(row, 0));
		nodes[row.name] = {activated(row, node), 0};
	}

private:
	NodeIdxPair node_of(const Row &row, size_t which) const
	{
		const auto at = which < row.inputs.size() ? nodes.find(row.inputs[which]) : nodes.end();
		if (at == nodes.end())
			throw std::runtime_error(row.name + ": reads a layer that is not there");
		return at->second;
	}

	static NodeParams named(const Row &row) { return {row.name, Target::CL}; }

	ITensorAccessorUPtr part(const Row &row, const char *what) const
	{
		return std::make_unique<FromFile>(weights + "/" + row.name + "." + what + ".npy");
	}

	NodeID source(const Row &row)
	{
		const auto extents = row.list("shape", 3);
		const TensorDescriptor pixels(TensorShape(extents[2], extents[1], extents[0], 1U), type, row.quantisation(),
					      DataLayout::NHWC);
		return GraphBuilder::add_input_node(graph, named(row), pixels, std::make_unique<FromFile>(input));
	}

	NodeID layer(const Row &row, NodeIdxPair from)
	{
		const std::string &operation = row.operation;
		if (operation == "conv")
			// Not Winograd: Mesa 25.0's compiler breaks its input transform (docs/internals/testing.md).
			return GraphBuilder::add_convolution_node(
				graph, named(row), from, row.kernel(), row.number("out"), row.steps(), row.number("groups"),
				arm_compute::graph::ConvolutionMethod::GEMM, FastMathHint::Disabled, part(row, "weight"),
				part(row, "bias"), row.quantisation("weight_"), row.quantisation());
		if (operation == "depthwise")
			return GraphBuilder::add_depthwise_convolution_node(
				graph, named(row), from, row.kernel(), row.steps(), 1, DepthwiseConvolutionMethod::Default,
				part(row, "weight"), part(row, "bias"), row.quantisation("weight_"), row.quantisation());
		if (operation == "full") {
			FullyConnectedLayerInfo in_order;
			in_order.set_weights_trained_layout(DataLayout::NHWC);
			return GraphBuilder::add_fully_connected_layer(graph, named(row), from, row.number("out"),
								       part(row, "weight"), part(row, "bias"), in_order,
								       row.quantisation("weight_"), row.quantisation());
		}
		if (operation == "max" || operation == "mean") {
			const PoolingType pooling = operation == "max" ? PoolingType::MAX : PoolingType::AVG;
			return GraphBuilder::add_pooling_node(
				graph, named(row), from,
				PoolingLayerInfo(pooling, row.kernel(), DataLayout::NHWC, row.steps(), true));
		}
		if (operation == "global")
			return GraphBuilder::add_pooling_node(graph, named(row), from,
							      PoolingLayerInfo(PoolingType::AVG, DataLayout::NHWC));
		if (operation == "norm")
			return GraphBuilder::add_normalization_node(
				graph, named(row), from,
				NormalizationLayerInfo(NormType::CROSS_MAP, row.number("size"), row.real("alpha"),
						       row.real("beta")));
		if (operation == "add")
			return GraphBuilder::add_elementwise_node(graph, named(row), from, node_of(row, 1),
								  EltwiseOperation::Add);
		if (operation == "concat") {
			std::vector<NodeIdxPair> parts;
			for (size_t i = 0; i < row.inputs.size(); i++)
				parts.push_back(node_of(row, i));
			return GraphBuilder::add_concatenate_node(
				graph, named(row), parts, descriptors::ConcatLayerDescriptor(DataLayoutDimension::CHANNEL));
		}
		if (operation == "double")
			return GraphBuilder::add_resize_node(graph, named(row), from,
							     InterpolationPolicy::NEAREST_NEIGHBOR, 2, 2);
		if (operation == "softmax")
			return GraphBuilder::add_softmax_node(
				graph, named(row), {GraphBuilder::add_flatten_node(graph, {row.name + ".flat", Target::CL}, from), 0});
		if (operation == "output")
			return GraphBuilder::add_output_node(graph, named(row), from,
							     std::make_unique<ToFile>(row.name + suffix + ".npy"));
		throw std::runtime_error(row.name + ": unknown operation " + operation);
	}

	NodeID activated(const Row &row, NodeID node)
	{
		const auto at = row.numbers.find("act");
		if (at == row.numbers.end() || at->second == "none")
			return node;
		ActivationLayerInfo info;
		if (at->second == "relu")
			info = ActivationLayerInfo(Activation::RELU);
		else if (at->second == "relu6")
			info = ActivationLayerInfo(Activation::BOUNDED_RELU, 6.f);
		else if (at->second == "leaky")
			info = ActivationLayerInfo(Activation::LEAKY_RELU, 0.1f);
		else
			throw std::runtime_error(row.name + ": unknown activation " + at->second);
		return GraphBuilder::add_activation_node(graph, {row.name + ".act", Target::CL}, {node, 0}, info);
	}

	Graph &graph;
	DataType type;
	std::string weights, input, suffix;
	std::map<std::string, NodeIdxPair> nodes;
};

DataType type_of(const std::string &line)
{
	if (line == "type f32")
		return DataType::F32;
	if (line == "type f16")
		return DataType::F16;
	if (line == "type u8")
		return DataType::QASYMM8;
	throw std::runtime_error("the table begins with `type f32`, `type f16` or `type u8`, not with `" + line + "`");
}

} // namespace

int main(int argc, char **argv)
try {
	const char *usage = "acl_network --network network.txt --weights folder --input input.npy --suffix text";
	const std::string path = acl::option(argc, argv, "--network", usage);
	std::ifstream table(path);
	std::string line;
	if (!std::getline(table, line))
		throw std::runtime_error(path + ": cannot be read");
	Stream stream(0, "network");
	Builder builder(stream.graph(), type_of(line), acl::option(argc, argv, "--weights", usage),
			acl::option(argc, argv, "--input", usage), acl::option(argc, argv, "--suffix", usage, ""));
	while (std::getline(table, line))
		builder.add(parse(line));
	stream.finalize(Target::CL, GraphConfig());
	stream.run();
	return 0;
} catch (const std::exception &error) {
	std::fprintf(stderr, "acl_network: %s\n", error.what());
	return 1;
}
