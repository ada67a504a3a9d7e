// SPDX-License-Identifier: MIT OR Apache-2.0
// Turns of work, one of which lies between cudaProfilerStart and Stop: two streams and the default stream, events, memsets, copies,
// variables, pointers in memory, memory of the turn's own. `region SEED FOLDER` keeps inputs and results of that turn in the folder,
// and says how long a turn takes. `region SEED FOLDER WHAT` does something in the region that cannot be recorded.
#include <algorithm>
#include <chrono>
#include <cooperative_groups.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_profiler_api.h>
#include <string>
#include <vector>

#include "check.cuh"

const int N = 1 << 18;
const size_t BYTES = N * sizeof(float);

__device__ float weights[256];
__device__ float *scratch;

// Long enough that an order that is not kept shows; whatever differs in the input grows.
__global__ void rounds_of(int n, int rounds, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float value = x[i];
    for (int k = 0; k < rounds; k++) value = sinf(fmaf(value, 2.5f, weights[k & 255]));
    y[i] = value;
}

__global__ void through_table(int n, float **table) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) table[2][i] = table[0][i] - 2.0f * table[1][i];
}

__global__ void through_variable(int n, const float *x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) scratch[i] += x[i];
}

__global__ void reversed(int n, const float *x, float *y) {
    extern __shared__ float block[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = threadIdx.x; k < 24000; k += blockDim.x) block[k] = k < blockDim.x && i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n) y[i] = block[blockDim.x - 1 - threadIdx.x];
}

__global__ void count(int n, const float *x, unsigned *bins) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&bins[(unsigned)fabsf(x[i] * 64.0f) & 63u], 1u);
}

__global__ void all_blocks(int n, float *x, float *sums) {
    auto grid = cooperative_groups::this_grid();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = i; k < n; k += gridDim.x * blockDim.x) x[k] *= 0.5f;
    grid.sync();
    if (i < 64) sums[i] = x[i] + x[n - 1 - i];
}

struct State {
    float *p, *q, *r, *s, **table, *sums, *total;
    unsigned *bins;
    cudaStream_t a, b;
    cudaEvent_t ready, done;
};

static void turn(State &m, const float *in0, const float *in1, float *out0, unsigned *out1, float *out2, float *out3) {
    const int block = 256, grid = N / block;
    CHECK(cudaMemcpyAsync(m.p, in0, BYTES, cudaMemcpyHostToDevice, m.a));
    CHECK(cudaMemcpyAsync(m.r, in1, BYTES, cudaMemcpyHostToDevice, m.b));
    rounds_of<<<grid, block, 0, m.a>>>(N, 400, m.p, m.q);
    CHECK(cudaEventRecord(m.ready, m.a));
    CHECK(cudaMemsetAsync(m.bins, 0, 64 * sizeof(unsigned), m.b));
    CHECK(cudaStreamWaitEvent(m.b, m.ready, 0));
    count<<<grid, block, 0, m.b>>>(N, m.q, m.bins);
    through_table<<<grid, block, 0, m.b>>>(N, m.table);
    float *own;
    CHECK(cudaMallocAsync(&own, BYTES, m.b));
    reversed<<<grid, block, 96000, m.b>>>(N, m.s, own);
    CHECK(cudaMemcpyAsync(m.s, own, BYTES, cudaMemcpyDeviceToDevice, m.b));
    CHECK(cudaFreeAsync(own, m.b));
    CHECK(cudaEventRecord(m.done, m.b));
    CHECK(cudaStreamWaitEvent(m.a, m.done, 0));
    rounds_of<<<grid, block, 0, m.a>>>(N, 200, m.s, m.q);
    // Stream a waits for the default stream, and the default stream for it.
    through_variable<<<grid, block>>>(N, m.q);
    CHECK(cudaMemset2DAsync(m.p, 4096, 0x11, 128, 16, m.a));
    int n = N;
    void *arguments[] = {&n, &m.q, &m.sums};
    CHECK(cudaLaunchCooperativeKernel((void *)all_blocks, dim3(64), dim3(256), arguments, 0, m.a));
    CHECK(cudaMemcpyAsync(out0, m.q, BYTES, cudaMemcpyDeviceToHost, m.a));
    CHECK(cudaMemcpyAsync(out1, m.bins, 64 * sizeof(unsigned), cudaMemcpyDeviceToHost, m.a));
    CHECK(cudaMemcpyAsync(out2, m.sums, 64 * sizeof(float), cudaMemcpyDeviceToHost, m.a));
    CHECK(cudaMemcpyAsync(out3, m.total, BYTES, cudaMemcpyDeviceToHost, m.a));
    float *pointer;
    CHECK(cudaMemcpyFromSymbol(&pointer, scratch, sizeof pointer));
    CHECK(cudaStreamSynchronize(m.a));
}

static void fill(std::vector<float> &x, unsigned seed) {
    for (auto &value : x) {
        seed = seed * 1664525u + 1013904223u;
        value = (float)(seed >> 8) / 16777216.0f - 0.5f;
    }
}

static void keep(const std::string &path, const void *bytes, size_t size) {
    FILE *file = fopen(path.c_str(), "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file)) exit(1);
}

static void nothing(void *) {}

int main(int count_, char **words) {
    if (count_ < 3) return 2;
    unsigned seed = atoi(words[1]);
    std::string folder = words[2], what = count_ > 3 ? words[3] : "";
    State m;
    for (float **p : {&m.p, &m.q, &m.r, &m.s, &m.total}) {
        CHECK(cudaMalloc(p, BYTES));
        CHECK(cudaMemset(*p, 0, BYTES));
    }
    CHECK(cudaMalloc(&m.bins, 64 * sizeof(unsigned)));
    CHECK(cudaMalloc(&m.sums, 64 * sizeof(float)));
    CHECK(cudaMalloc(&m.table, 3 * sizeof(float *)));
    float *table[] = {m.q, m.r, m.s};
    CHECK(cudaMemcpy(m.table, table, sizeof table, cudaMemcpyHostToDevice));
    std::vector<float> numbers(256);
    fill(numbers, 7);
    CHECK(cudaMemcpyToSymbol(weights, numbers.data(), sizeof weights));
    CHECK(cudaMemcpyToSymbol(scratch, &m.total, sizeof m.total));
    CHECK(cudaFuncSetAttribute(reversed, cudaFuncAttributeMaxDynamicSharedMemorySize, 96000));
    CHECK(cudaStreamCreate(&m.a));
    CHECK(cudaStreamCreateWithFlags(&m.b, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&m.ready, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&m.done, cudaEventDisableTiming));

    std::vector<float> in0(N), in1(N);
    float *out0, *out2, *out3, *pinned;
    unsigned *out1;
    CHECK(cudaMallocHost(&out0, BYTES));
    CHECK(cudaMallocHost(&out3, BYTES));
    CHECK(cudaMallocHost(&pinned, BYTES));
    CHECK(cudaMallocHost(&out1, 64 * sizeof(unsigned)));
    CHECK(cudaMallocHost(&out2, 64 * sizeof(float)));
    fill(in0, 99);
    fill(in1, 98);
    turn(m, in0.data(), in1.data(), out0, out1, out2, out3);

    fill(in0, seed);
    fill(in1, seed + 1);
    memcpy(pinned, in0.data(), BYTES);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaProfilerStart());
    float *managed = nullptr;
    if (what == "callback") {
        // A function of the host that may take a result.
        rounds_of<<<N / 256, 256, 0, m.a>>>(N, 1, m.p, m.q);
        CHECK(cudaMemcpyAsync(out3, m.q, BYTES, cudaMemcpyDeviceToHost, m.a));
        CHECK(cudaLaunchHostFunc(m.a, nothing, nullptr));
    }
    if (what == "managed") {
        CHECK(cudaMallocManaged(&managed, BYTES));
        rounds_of<<<N / 256, 256, 0, m.a>>>(N, 1, m.p, managed);
    }
    if (what == "capture" || what == "graph") {
        cudaGraph_t graph;
        cudaGraphExec_t executable;
        CHECK(cudaStreamBeginCapture(m.a, cudaStreamCaptureModeThreadLocal));
        rounds_of<<<N / 256, 256, 0, m.a>>>(N, 1, m.p, m.q);
        CHECK(cudaStreamEndCapture(m.a, &graph));
        CHECK(cudaGraphInstantiate(&executable, graph, 0));
        CHECK(cudaGraphLaunch(executable, m.a));
    }
    turn(m, pinned, in1.data(), out0, out1, out2, out3);
    if (what == "late") rounds_of<<<N / 256, 256, 0, m.a>>>(N, (int)out1[0], m.p, m.q);
    CHECK(cudaProfilerStop());
    keep(folder + "/in0", in0.data(), BYTES);
    keep(folder + "/in1", in1.data(), BYTES);
    keep(folder + "/out0", out0, BYTES);
    keep(folder + "/out1", out1, 64 * sizeof(unsigned));
    keep(folder + "/out2", out2, 64 * sizeof(float));
    keep(folder + "/out3", out3, BYTES);

    std::vector<double> times;
    for (int k = 0; k < 200; k++) {
        auto began = std::chrono::steady_clock::now();
        memcpy(pinned, in0.data(), BYTES);
        turn(m, pinned, in1.data(), out0, out1, out2, out3);
        times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() * 1e6);
    }
    std::sort(times.begin(), times.end());
    printf("turn %.2f\n", times[times.size() / 2]);
}
