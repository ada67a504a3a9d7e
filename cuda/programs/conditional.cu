// SPDX-License-Identifier: MIT OR Apache-2.0
// Graphs that decide on the GPU what runs: IF, WHILE and SWITCH, each between two kernels that run once. And a kernel in no graph.
#include <cstdio>
#include <cstdlib>

#include "check.cuh"

extern "C" {
__global__ void plain(int *p) { p[0] += 1; }
__global__ void decides(int *p, cudaGraphConditionalHandle handle, unsigned value) {
    p[1] += 1;
    cudaGraphSetConditional(handle, value);
}
__global__ void in_if(int *p) { p[2] += 1; }
__global__ void in_while(int *p, cudaGraphConditionalHandle handle) {
    p[3] += 1;
    cudaGraphSetConditional(handle, p[3] % 5 != 0);
}
__global__ void in_first(int *p) { p[4] += 1; }
__global__ void in_second(int *p) { p[5] += 1; }
__global__ void follows(int *p) { p[6] += 1; }
}

static cudaGraphNode_t kernel(cudaGraph_t graph, const cudaGraphNode_t *after, void *f, void **arguments) {
    cudaKernelNodeParams parameters = {};
    parameters.func = f;
    parameters.gridDim = dim3(1);
    parameters.blockDim = dim3(1);
    parameters.kernelParams = arguments;
    cudaGraphNode_t node;
    CHECK(cudaGraphAddKernelNode(&node, graph, after, after ? 1 : 0, &parameters));
    return node;
}

// A graph in which a kernel gives the condition its value; the graphs that it chooses from come back.
static cudaGraph_t deciding(cudaGraphConditionalNodeType type, unsigned size, unsigned value, int *p,
                            cudaGraphConditionalHandle *handle, cudaGraph_t *bodies) {
    cudaGraph_t graph;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphConditionalHandleCreate(handle, graph, 0, cudaGraphCondAssignDefault));
    void *arguments[] = {&p, handle, &value}, *only[] = {&p};
    cudaGraphNode_t first = kernel(graph, nullptr, (void *)decides, arguments), node;
    cudaGraphNodeParams parameters = {};
    parameters.type = cudaGraphNodeTypeConditional;
    parameters.conditional.handle = *handle;
    parameters.conditional.type = type;
    parameters.conditional.size = size;
#if CUDART_VERSION >= 13000
    CHECK(cudaGraphAddNode(&node, graph, &first, nullptr, 1, &parameters));
#else
    CHECK(cudaGraphAddNode(&node, graph, &first, 1, &parameters));
#endif
    for (unsigned i = 0; i < size; i++) bodies[i] = parameters.conditional.phGraph_out[i];
    kernel(graph, &node, (void *)follows, only);
    return graph;
}

int main() {
    int *p, found[7];
    CHECK(cudaMalloc(&p, sizeof found));
    CHECK(cudaMemset(p, 0, sizeof found));
    plain<<<1, 1>>>(p);
    cudaGraphConditionalHandle handle;
    cudaGraph_t bodies[2], graphs[3];
    void *arguments[] = {&p, &handle};
    graphs[0] = deciding(cudaGraphCondTypeIf, 1, 1, p, &handle, bodies);
    kernel(bodies[0], nullptr, (void *)in_if, arguments);
    graphs[1] = deciding(cudaGraphCondTypeWhile, 1, 1, p, &handle, bodies);
    kernel(bodies[0], nullptr, (void *)in_while, arguments);
    graphs[2] = deciding(cudaGraphCondTypeSwitch, 2, 1, p, &handle, bodies);
    kernel(bodies[0], nullptr, (void *)in_first, arguments);
    kernel(bodies[1], nullptr, (void *)in_second, arguments);
    for (cudaGraph_t graph : graphs) {
        cudaGraphExec_t executable;
        CHECK(cudaGraphInstantiate(&executable, graph, 0));
        for (int i = 0; i < 2; i++) CHECK(cudaGraphLaunch(executable, 0));
        CHECK(cudaDeviceSynchronize());
    }
    CHECK(cudaMemcpy(found, p, sizeof found, cudaMemcpyDeviceToHost));
    const int right[7] = {1, 6, 2, 10, 0, 2, 6};
    for (int i = 0; i < 7; i++)
        if (found[i] != right[i]) return printf("word %d is %d, not %d\n", i, found[i], right[i]), 1;
    printf("conditional nodes ran\n");
}
