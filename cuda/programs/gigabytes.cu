// SPDX-License-Identifier: MIT OR Apache-2.0
// `gigabytes N`: a kernel that reads N GB of random words and changes half of them.
// `gigabytes FOLDER`: reads the files of a folder and copies them to the GPU, which is the least that a replay of them must do.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

__device__ unsigned scattered(unsigned long long i) {
    i = (i ^ (i >> 30)) * 0xbf58476d1ce4e5b9ull;
    i = (i ^ (i >> 27)) * 0x94d049bb133111ebull;
    return i ^ (i >> 31);
}

extern "C" __global__ void fill(unsigned *p, size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (size_t)blockDim.x)
        p[i] = scattered(i + 1);
}

extern "C" __global__ void change(unsigned *p, size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n / 2; i += gridDim.x * (size_t)blockDim.x)
        p[i] = scattered(p[i] ^ p[i + n / 2]);
}

static int copy(const char *folder) {
    size_t most = 0;
    std::vector<std::filesystem::path> files;
    for (auto &entry : std::filesystem::recursive_directory_iterator(folder))
        if (entry.is_regular_file()) {
            files.push_back(entry.path());
            if (entry.file_size() > most) most = entry.file_size();
        }
    char *host = (char *)malloc(most), *device;
    if (!host || cudaMalloc(&device, most) != cudaSuccess) return 1;
    for (auto &path : files) {
        FILE *file = fopen(path.c_str(), "rb");
        if (!file) return 1;
        size_t size = fread(host, 1, most, file);
        fclose(file);
        if (cudaMemcpy(device, host, size, cudaMemcpyHostToDevice) != cudaSuccess) return 1;
    }
    return printf("copied %zu files\n", files.size()) < 0;
}

int main(int argc, char **argv) {
    if (argc > 1 && atoll(argv[1]) == 0) return copy(argv[1]);
    size_t bytes = (argc > 1 ? atoll(argv[1]) : 2) << 30;
    unsigned *p, last;
    if (cudaMalloc(&p, bytes) != cudaSuccess) return 1;
    fill<<<1024, 256>>>(p, bytes / 4);
    change<<<1024, 256>>>(p, bytes / 4);
    if (cudaMemcpy(&last, p, 4, cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
    printf("gigabytes %u\n", last);
}
