// SPDX-License-Identifier: MIT OR Apache-2.0
// Many operators of Arm Compute Library in one process, each on tensors from files.
//
// acl_operators --cases cases.txt [--from N]
//     Each line is a case: space-separated KEY=VALUE, of which `op` names the operator, `t0`, `t1`... its inputs and `out`
//     its output as SHAPE:TYPE[:SCALE:OFFSET] (NumPy's order; f32, f16, q8, s32). Case N reads N.t0, N.t1... (plain
//     elements) and writes N.out. Prints "N done", "N refused REASON" (the library does not do this) or "N error REASON".
#include <arm_compute/runtime/CL/CLFunctions.h>

#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>

#include "acl.hpp"

using namespace arm_compute;

namespace {

// What the library's validation says against a case.
struct Refused : std::runtime_error {
	using std::runtime_error::runtime_error;
};

class Case {
public:
	Case(const std::string &line, size_t number) : number_(number)
	{
		std::istringstream words(line);
		for (std::string word; words >> word;) {
			const size_t equals = word.find('=');
			if (equals == std::string::npos)
				throw std::runtime_error("not KEY=VALUE: " + word);
			values_[word.substr(0, equals)] = word.substr(equals + 1);
		}
		layout_ = text("layout", "nhwc") == "nchw" ? DataLayout::NCHW : DataLayout::NHWC;
		for (size_t i = 0; values_.count("t" + std::to_string(i)); i++)
			inputs_.push_back(tensor("t" + std::to_string(i)));
		output_ = tensor("out");
	}

	std::string text(const std::string &key, const std::string &fallback = "") const
	{
		const auto at = values_.find(key);
		return at == values_.end() ? fallback : at->second;
	}
	float number(const std::string &key, float fallback = 0) const
	{
		const std::string value = text(key);
		return value.empty() ? fallback : std::stof(value);
	}
	int integer(const std::string &key, int fallback = 0) const
	{
		const std::string value = text(key);
		return value.empty() ? fallback : std::stoi(value);
	}
	bool flag(const std::string &key) const { return integer(key) != 0; }

	CLTensor *in(size_t i) const { return i < inputs_.size() ? inputs_[i].get() : nullptr; }
	const ITensorInfo *info(size_t i) const { return in(i) ? in(i)->info() : nullptr; }
	size_t count() const { return inputs_.size(); }
	CLTensor *out() const { return output_.get(); }
	const ITensorInfo *out_info() const { return output_->info(); }
	DataLayout layout() const { return layout_; }

	// Stride and padding of a window.
	PadStrideInfo window() const
	{
		const int stride = integer("stride", 1), pad = integer("pad");
		return PadStrideInfo(stride, integer("stride_y", stride), pad, integer("pad_y", pad));
	}

	void load() const
	{
		for (size_t i = 0; i < inputs_.size(); i++) {
			inputs_[i]->allocator()->allocate();
			transfer(*inputs_[i], file("t" + std::to_string(i)), false);
		}
		output_->allocator()->allocate();
	}
	void store() const { transfer(*output_, file("out"), true); }

private:
	std::string file(const std::string &name) const { return std::to_string(number_) + "." + name; }

	std::unique_ptr<CLTensor> tensor(const std::string &key) const
	{
		std::istringstream parts(text(key));
		std::string extents, type, scale, offset, extent;
		std::getline(parts, extents, ':');
		std::getline(parts, type, ':');
		std::getline(parts, scale, ':');
		std::getline(parts, offset, ':');
		std::vector<size_t> shape;
		for (std::istringstream list(extents); std::getline(list, extent, 'x');)
			shape.push_back(std::stoul(extent));
		static const std::map<std::string, DataType> types = {{"f32", DataType::F32},
								      {"f16", DataType::F16},
								      {"q8", DataType::QASYMM8},
								      {"s32", DataType::S32}};
		TensorInfo info(acl::shape(shape), 1, types.at(type));
		info.set_data_layout(layout_);
		if (!scale.empty())
			info.set_quantization_info(QuantizationInfo(std::stof(scale), std::stoi(offset)));
		auto tensor = std::make_unique<CLTensor>();
		tensor->allocator()->init(info);
		return tensor;
	}

	static void transfer(CLTensor &tensor, const std::string &path, bool save)
	{
		const size_t size = tensor.info()->element_size();
		std::vector<char> bytes(tensor.info()->tensor_shape().total_size() * size);
		if (!save && !std::ifstream(path, std::ios::binary).read(bytes.data(), bytes.size()))
			throw std::runtime_error("cannot read " + path);
		tensor.map(true);
		acl::each_element(*tensor.info(), [&](size_t element, size_t offset) {
			char *const here = bytes.data() + element * size;
			char *const there = reinterpret_cast<char *>(tensor.buffer()) + offset;
			std::memcpy(save ? here : there, save ? there : here, size);
		});
		tensor.unmap();
		if (save && !std::ofstream(path, std::ios::binary).write(bytes.data(), bytes.size()))
			throw std::runtime_error("cannot write " + path);
	}

	size_t number_;
	std::map<std::string, std::string> values_;
	DataLayout layout_ = DataLayout::NHWC;
	std::vector<std::unique_ptr<CLTensor>> inputs_;
	std::unique_ptr<CLTensor> output_;
};

using Function = std::unique_ptr<IFunction>;

void check(const Status &status)
{
	if (status.error_code() != ErrorCode::OK)
		throw Refused(status.error_description());
}

// A function configured with tensors, after validation with their descriptions.
template <typename F, typename... Rest> Function one_input(const Case &c, Rest... rest)
{
	check(F::validate(c.info(0), c.out_info(), rest...));
	auto function = std::make_unique<F>();
	function->configure(c.in(0), c.out(), rest...);
	return function;
}

template <typename F, typename... Rest> Function two_inputs(const Case &c, Rest... rest)
{
	check(F::validate(c.info(0), c.info(1), c.out_info(), rest...));
	auto function = std::make_unique<F>();
	function->configure(c.in(0), c.in(1), c.out(), rest...);
	return function;
}

template <typename F, typename... Rest> Function three_inputs(const Case &c, Rest... rest)
{
	check(F::validate(c.info(0), c.info(1), c.info(2), c.out_info(), rest...));
	auto function = std::make_unique<F>();
	function->configure(c.in(0), c.in(1), c.in(2), c.out(), rest...);
	return function;
}

Function activation(const Case &c)
{
	using A = ActivationFunction;
	static const std::map<std::string, A> functions = {
		{"logistic", A::LOGISTIC}, {"tanh", A::TANH},	  {"relu", A::RELU},
		{"relu_a", A::BOUNDED_RELU}, {"relu_ab", A::LU_BOUNDED_RELU}, {"leaky", A::LEAKY_RELU},
		{"soft", A::SOFT_RELU},	   {"elu", A::ELU},	  {"abs", A::ABS},
		{"square", A::SQUARE},	   {"sqrt", A::SQRT},	  {"linear", A::LINEAR},
		{"hard_swish", A::HARD_SWISH}, {"swish", A::SWISH}, {"gelu", A::GELU}};
	const ActivationLayerInfo info(functions.at(c.text("function")), c.number("a"), c.number("b"));
	return one_input<CLActivationLayer>(c, info);
}

Function convolution(const Case &c)
{
	const unsigned dilation = c.integer("dilation", 1);
	return three_inputs<CLConvolutionLayer>(c, c.window(), WeightsInfo(), Size2D(dilation, dilation),
						ActivationLayerInfo(), false, unsigned(c.integer("groups", 1)));
}

Function depthwise(const Case &c)
{
	const unsigned dilation = c.integer("dilation", 1);
	return three_inputs<CLDepthwiseConvolutionLayer>(c, c.window(), unsigned(c.integer("multiplier", 1)),
							 ActivationLayerInfo(), Size2D(dilation, dilation));
}

Function pooling(const Case &c)
{
	const std::string kind = c.text("kind");
	const PoolingType type = kind == "max" ? PoolingType::MAX : kind == "l2" ? PoolingType::L2 : PoolingType::AVG;
	const Size2D size(c.integer("width"), c.integer("height"));
	const PoolingLayerInfo info(type, size, c.layout(), c.window(), c.flag("exclude"));
	return one_input<CLPoolingLayer>(c, info);
}

Function batch_normalization(const Case &c)
{
	// Inputs: data, mean, variance, beta, gamma.
	const float epsilon = c.number("epsilon");
	check(CLBatchNormalizationLayer::validate(c.info(0), c.out_info(), c.info(1), c.info(2), c.info(3), c.info(4),
						  epsilon));
	auto function = std::make_unique<CLBatchNormalizationLayer>();
	function->configure(c.in(0), c.out(), c.in(1), c.in(2), c.in(3), c.in(4), epsilon);
	return function;
}

Function normalization(const Case &c)
{
	const NormType type = c.text("kind") == "cross" ? NormType::CROSS_MAP : NormType::IN_MAP_1D;
	const NormalizationLayerInfo info(type, c.integer("size"), c.number("alpha"), c.number("beta"), c.number("kappa"));
	return one_input<CLNormalizationLayer>(c, info);
}

Function concatenation(const Case &c)
{
	std::vector<const ITensorInfo *> infos;
	std::vector<const ICLTensor *> tensors;
	for (size_t i = 0; i < c.count(); i++) {
		infos.push_back(c.info(i));
		tensors.push_back(c.in(i));
	}
	check(CLConcatenateLayer::validate(infos, c.out_info(), c.integer("axis")));
	auto function = std::make_unique<CLConcatenateLayer>();
	function->configure(tensors, c.out(), c.integer("axis"));
	return function;
}

Function scale(const Case &c)
{
	const auto policy = c.text("policy") == "nearest" ? InterpolationPolicy::NEAREST_NEIGHBOR :
							    InterpolationPolicy::BILINEAR;
	const auto sampling = c.flag("center") ? SamplingPolicy::CENTER : SamplingPolicy::TOP_LEFT;
	const ScaleKernelInfo info(policy, BorderMode::REPLICATE, PixelValue(), sampling, false, c.flag("corners"),
				   c.layout());
	return one_input<CLScale>(c, info);
}

Function reduction(const Case &c)
{
	using R = ReductionOperation;
	static const std::map<std::string, R> kinds = {{"sum", R::SUM},	  {"mean", R::MEAN_SUM}, {"squares", R::SUM_SQUARE},
						       {"product", R::PROD}, {"min", R::MIN},	{"max", R::MAX}};
	return one_input<CLReductionOperation>(c, unsigned(c.integer("axis")), kinds.at(c.text("kind")), true);
}

Function elementwise(const Case &c)
{
	const std::string kind = c.text("kind");
	if (kind == "add")
		return two_inputs<CLArithmeticAddition>(c, ConvertPolicy::SATURATE);
	if (kind == "subtract")
		return two_inputs<CLArithmeticSubtraction>(c, ConvertPolicy::SATURATE);
	if (kind == "multiply")
		return two_inputs<CLPixelWiseMultiplication>(c, 1.0f, ConvertPolicy::SATURATE,
							     RoundingPolicy::TO_NEAREST_EVEN);
	if (kind == "divide")
		return two_inputs<CLArithmeticDivision>(c);
	if (kind == "max")
		return two_inputs<CLElementwiseMax>(c);
	if (kind == "min")
		return two_inputs<CLElementwiseMin>(c);
	if (kind == "squared_difference")
		return two_inputs<CLElementwiseSquaredDiff>(c);
	if (kind == "power")
		return two_inputs<CLElementwisePower>(c);
	if (kind == "exp")
		return one_input<CLExpLayer>(c);
	if (kind == "log")
		return one_input<CLLogLayer>(c);
	if (kind == "rsqrt")
		return one_input<CLRsqrtLayer>(c);
	if (kind == "negate")
		return one_input<CLNegLayer>(c);
	if (kind == "abs")
		return one_input<CLAbsLayer>(c);
	if (kind == "round")
		return one_input<CLRoundLayer>(c);
	if (kind == "sin")
		return one_input<CLSinLayer>(c);
	throw std::runtime_error("no such element-wise operation: " + kind);
}

const std::map<std::string, std::function<Function(const Case &)>> operators = {
	{"activation", activation},
	{"gemm", [](const Case &c) { return three_inputs<CLGEMM>(c, c.number("alpha"), c.number("beta")); }},
	{"gemm_low", [](const Case &c) { return three_inputs<CLGEMMLowpMatrixMultiplyCore>(c); }},
	{"convolution", convolution},
	{"direct", [](const Case &c) { return three_inputs<CLDirectConvolutionLayer>(c, c.window()); }},
	{"winograd",
	 [](const Case &c) {
		 return three_inputs<CLWinogradConvolutionLayer>(c, c.window(), ActivationLayerInfo(), true);
	 }},
	{"depthwise", depthwise},
	{"fully_connected", [](const Case &c) { return three_inputs<CLFullyConnectedLayer>(c); }},
	{"pooling", pooling},
	{"softmax", [](const Case &c) { return one_input<CLSoftmaxLayer>(c, c.number("beta", 1)); }},
	{"batch_normalization", batch_normalization},
	{"normalization", normalization},
	{"l2_normalize", [](const Case &c) { return one_input<CLL2NormalizeLayer>(c, c.integer("axis"), 1e-6f); }},
	{"concatenation", concatenation},
	{"reshape", [](const Case &c) { return one_input<CLReshapeLayer>(c); }},
	{"transpose", [](const Case &c) { return one_input<CLTranspose>(c); }},
	{"scale", scale},
	{"reduction", reduction},
	{"elementwise", elementwise},
	{"quantize", [](const Case &c) { return one_input<CLQuantizationLayer>(c); }},
	{"dequantize", [](const Case &c) { return one_input<CLDequantizationLayer>(c); }},
};

void run(const std::string &line, size_t number)
try {
	const Case c(line, number);
	const Function function = operators.at(c.text("op"))(c);
	c.load();
	function->run();
	CLScheduler::get().sync();
	c.store();
	std::cout << number << " done" << std::endl;
} catch (const Refused &reason) {
	std::cout << number << " refused " << reason.what() << std::endl;
} catch (const std::exception &reason) {
	std::cout << number << " error " << reason.what() << std::endl;
}

} // namespace

int main(int argc, char **argv)
{
	const char *usage = "acl_operators --cases cases.txt [--from N]";
	std::ifstream cases(acl::option(argc, argv, "--cases", usage));
	const size_t from = std::stoul(acl::option(argc, argv, "--from", usage, "0"));
	if (!cases) {
		std::cerr << "acl_operators: cannot read the cases\n";
		return 2;
	}
	CLScheduler::get().default_init();
	size_t number = 0;
	for (std::string line; std::getline(cases, line); number++)
		if (number >= from)
			run(line, number);
	return 0;
}
