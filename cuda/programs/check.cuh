// SPDX-License-Identifier: MIT OR Apache-2.0
// Ends a program whose call of CUDA failed, and says which.
#pragma once
#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess) {                                                                                    \
            printf("%s: %s\n", #call, cudaGetErrorString(error));                                                      \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
