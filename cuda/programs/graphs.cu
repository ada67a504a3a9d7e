// SPDX-License-Identifier: MIT OR Apache-2.0
// Graphs built by hand, changed and updated; limits that kernels depend on: a deep stack, a large heap.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "check.cuh"

__global__ void scale(float *p, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] *= factor;
}

__global__ void add(float *p, const float *q, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] += q[i];
}

// Each level has a frame of its own: more than the default stack.
__device__ __noinline__ int deep(int level, int seed) {
    volatile int frame[64];
    for (int i = 0; i < 64; i++) frame[i] = seed + i;
    int below = level ? deep(level - 1, seed * 3 + 1) : 0;
    return below + frame[(seed & 31) + (level & 31)];
}

__global__ void recursive(int *out, int levels) {
    out[threadIdx.x] = deep(levels, threadIdx.x);
}

// 32 MB out of the heap, which has 8 unless it is told to have more.
__global__ void from_heap(int *out) {
    int *room = (int *)malloc(32 << 20);
    out[0] = room != nullptr;
    if (room) {
        room[1000000] = 7;
        out[1] = room[1000000];
        free(room);
    }
}

static int called;
static void host_function(void *) { called++; }

static cudaGraphNode_t kernel(cudaGraph_t graph, std::vector<cudaGraphNode_t> after, void *f, int n, void **arguments) {
    cudaKernelNodeParams parameters = {};
    parameters.func = f;
    parameters.gridDim = dim3((n + 255) / 256);
    parameters.blockDim = dim3(256);
    parameters.kernelParams = arguments;
    cudaGraphNode_t node;
    CHECK(cudaGraphAddKernelNode(&node, graph, after.data(), after.size(), &parameters));
    return node;
}

int main() {
    int n = 1 << 18;
    float *p, *q, factor = 1.5f, other = 0.5f;
    CHECK(cudaMalloc(&p, n * 4));
    CHECK(cudaMalloc(&q, n * 4));
    std::vector<float> h(n);
    for (int i = 0; i < n; i++) h[i] = i % 1000;
    CHECK(cudaMemcpy(q, h.data(), n * 4, cudaMemcpyHostToDevice));

    // p = 0; p += q, in a graph of its own; p *= 1.5; a function of the host; p += q; p to h.
    cudaGraph_t graph, child;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphCreate(&child, 0));
    void *scaled[] = {&p, &factor, &n}, *added[] = {&p, &q, &n}, *changed[] = {&p, &other, &n};
    kernel(child, {}, (void *)add, n, added);
    cudaMemsetParams zero = {};
    zero.dst = p;
    zero.elementSize = 4;
    zero.width = n;
    zero.height = 1;
    cudaGraphNode_t set, inner, host, copy;
    CHECK(cudaGraphAddMemsetNode(&set, graph, nullptr, 0, &zero));
    CHECK(cudaGraphAddChildGraphNode(&inner, graph, &set, 1, child));
    cudaGraphNode_t first = kernel(graph, {inner}, (void *)scale, n, scaled);
    cudaHostNodeParams function = {host_function, nullptr};
    CHECK(cudaGraphAddHostNode(&host, graph, &first, 1, &function));
    cudaGraphNode_t last = kernel(graph, {host}, (void *)add, n, added);
    CHECK(cudaGraphAddMemcpyNode1D(&copy, graph, &last, 1, h.data(), p, n * 4, cudaMemcpyDeviceToHost));

    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    cudaGraphExec_t executable;
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaStreamSynchronize(stream));
    float one = h[999];
    cudaKernelNodeParams parameters = {};
    parameters.func = (void *)scale;
    parameters.gridDim = dim3((n + 255) / 256);
    parameters.blockDim = dim3(256);
    parameters.kernelParams = changed;
    CHECK(cudaGraphExecKernelNodeSetParams(executable, first, &parameters));
    CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaStreamSynchronize(stream));
    float two = h[999];

    int *out, results[34];
    CHECK(cudaMalloc(&out, sizeof results));
    CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 64 << 10));
    CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 << 20));
    recursive<<<1, 32>>>(out, 100);
    from_heap<<<1, 1>>>(out + 32);
    CHECK(cudaMemcpy(results, out, sizeof results, cudaMemcpyDeviceToHost));
    printf("graphs %g %g, %d calls, heap %d %d\n", one, two, called, results[32], results[33]);
    return one != 2497.5f || two != 1498.5f || called != 2 || results[32] != 1 || results[33] != 7;
}
