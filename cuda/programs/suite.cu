// SPDX-License-Identifier: MIT OR Apache-2.0
// Kernels of many kinds: bounds, registers, shared memory, pointers in memory, variables, pools, pinned memory, a graph.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "check.cuh"

#define EACH(i, n) for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)

__global__ void saxpy(int n, float a, const float *x, float *y) {
    EACH(i, n) y[i] = a * x[i] + y[i];
}

__global__ void __launch_bounds__(256) capped(int n, const float *x, float *y) {
    EACH(i, n) y[i] = sinf(x[i]) * 2.0f;
}

// Unrolled far, so that it has many registers: fewer are faster.
__global__ void nbody(int n, const float4 *bodies, float4 *forces) {
    EACH(i, n) {
        float4 own = bodies[i];
        float3 force = {0, 0, 0};
#pragma unroll 8
        for (int j = 0; j < n; j++) {
            float4 other = bodies[j];
            float dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
            float r = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
            float s = other.w * r * r * r;
            force.x += dx * s;
            force.y += dy * s;
            force.z += dz * s;
        }
        forces[i] = make_float4(force.x, force.y, force.z, 0);
    }
}

__global__ void much_shared(int n, const float *x, float *y) {
    extern __shared__ float copy[];
    const int m = 24000;
    for (int i = threadIdx.x; i < m; i += blockDim.x) copy[i] = x[i % n];
    __syncthreads();
    for (int i = threadIdx.x; i < m; i += blockDim.x) y[blockIdx.x * m + i] = copy[m - 1 - i];
}

struct Node {
    Node *next;
    float *data;
    int count;
};

__global__ void chase(Node *head) {
    for (Node *node = head; node; node = node->next)
        for (int i = threadIdx.x; i < node->count; i += blockDim.x) node->data[i] += 1;
}

__device__ int counter;
__constant__ float coefficients[4];
__device__ float table[64];
__device__ int *self = &counter;

__global__ void variables(float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = coefficients[i & 3] * table[i & 63];
        atomicAdd(self, 1);
    }
}

struct Packed {
    double d;
    const float *in;
    float *out;
    char c;
    int n;
};

__global__ void by_struct(Packed b, short s, const float *const *rows) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < b.n) b.out[i] = b.in[i] * (float)b.d + b.c + s + rows[i & 3][i];
}

__global__ void sum(int n, const float *x, float *out) {
    float part = 0;
    EACH(i, n) part += x[i];
    atomicAdd(out, part);
}

template <class T> static T *device(const std::vector<T> &values) {
    T *p;
    CHECK(cudaMalloc(&p, values.size() * sizeof(T)));
    CHECK(cudaMemcpy(p, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    return p;
}

int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 1 << 22;
    std::vector<float> h(n);
    srand(7);
    for (auto &v : h) v = rand() / (float)RAND_MAX - 0.5f;
    float *x = device(h), *y = device(h), *small = device(std::vector<float>(32 * 24000)), *unreached;
    CHECK(cudaMalloc(&unreached, 256 << 20));
    CHECK(cudaMemset(unreached, 1, 256 << 20));

    saxpy<<<1024, 256>>>(n, 2.5f, x, y);
    capped<<<1024, 128>>>(n, x, y);
    int bodies = 16384;
    nbody<<<bodies / 128, 128>>>(bodies, (float4 *)x, (float4 *)y);
    CHECK(cudaFuncSetAttribute(much_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 98304));
    much_shared<<<32, 256, 98304>>>(n, x, small);
    CHECK(cudaGetLastError());

    Node *next = nullptr;
    for (int i = 0; i < 5; i++) {
        float *data = device(std::vector<float>(h.begin(), h.begin() + 1000 * (i + 1)));
        next = device(std::vector<Node>{{next, data, 1000 * (i + 1)}});
    }
    chase<<<1, 256>>>(next);

    float c[4] = {1, 2, 3, 4}, t[64];
    for (int i = 0; i < 64; i++) t[i] = i * 0.5f;
    CHECK(cudaMemcpyToSymbol(coefficients, c, sizeof c));
    CHECK(cudaMemcpyToSymbol(table, t, sizeof t));
    variables<<<4, 256>>>(small, 800);

    int few = n < 100200 ? n - 200 : 100000;
    const float **rows = device(std::vector<const float *>{x, y, x + 100, y + 100});
    float *out = device(std::vector<float>(few));
    by_struct<<<400, 256>>>(Packed{1.5, x, out, 3, few}, 7, rows);
    sum<<<512, 256>>>(n, x, small + 2000);

    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    float *pool, *pinned;
    CHECK(cudaMallocAsync(&pool, n * 4l, stream));
    CHECK(cudaMemcpyAsync(pool, x, n * 4l, cudaMemcpyDeviceToDevice, stream));
    saxpy<<<512, 512, 0, stream>>>(n / 2, 0.5f, x, pool);
    int pins = n < 1 << 18 ? n : 1 << 18;
    CHECK(cudaMallocHost(&pinned, pins * 4));
    for (int i = 0; i < pins; i++) pinned[i] = i;
    saxpy<<<64, 64, 0, stream>>>(pins, 1.0f, pinned, pool);
    CHECK(cudaStreamSynchronize(stream));

    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    saxpy<<<64, 64, 0, stream>>>(1000, 3.0f, x, pool);
    capped<<<4, 64, 0, stream>>>(1000, x, pool);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaMemcpyAsync(h.data(), pool, n * 4l, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));

    double check = 0;
    for (auto v : h) check += v;
    CHECK(cudaMemcpy(h.data(), y, n * 4l, cudaMemcpyDeviceToHost));
    for (auto v : h) check += v;
    int count;
    CHECK(cudaMemcpyFromSymbol(&count, counter, sizeof count));
    printf("suite %d: sum %.6f, counter %d\n", n, check, count);
    return count != 800;
}
