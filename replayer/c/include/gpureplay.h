// SPDX-License-Identifier: MIT OR Apache-2.0
// Replays of recorded GPU computations. Made by cbindgen from replayer/c/src; docs/embedding.md shows how to use it.
//
// Functions that can fail return a gpureplay_status; gpureplay_last_error() says in words what went wrong, in the thread that
// called. A recording may be shared by threads. A session belongs to one thread at a time; each thread opens its own.

#ifndef GPUREPLAY_H
#define GPUREPLAY_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// How a call ended; numbers as the command's exit codes.
typedef enum {
  // Done.
  GPUREPLAY_STATUS_OK = 0,
  // The arguments make no sense for this recording.
  GPUREPLAY_STATUS_USAGE = 2,
  // The recording is damaged or not allowed, or is no recording.
  GPUREPLAY_STATUS_RECORDING = 3,
  // A file is missing or does not fit.
  GPUREPLAY_STATUS_INPUT = 4,
  // The device cannot be used, or the replay failed. The GPU was reset; the next run starts afresh.
  GPUREPLAY_STATUS_DEVICE = 5,
  // A result could not be written.
  GPUREPLAY_STATUS_OUTPUT = 6,
  // A bug in the library.
  GPUREPLAY_STATUS_PANIC = 7,
} gpureplay_status;

// Role of a tensor.
typedef enum {
  // Must be bound before a run.
  GPUREPLAY_TENSOR_KIND_INPUT = 0,
  // Can be read after a run.
  GPUREPLAY_TENSOR_KIND_OUTPUT = 1,
  // Has a value in the recording or in a file beside it, and may be bound.
  GPUREPLAY_TENSOR_KIND_WEIGHT = 2,
  // Computed by a layer; may be read after it, and replaced.
  GPUREPLAY_TENSOR_KIND_INTERMEDIATE = 3,
  // Changed by a run, and kept for the next.
  GPUREPLAY_TENSOR_KIND_STATE = 4,
} gpureplay_tensor_kind;

// Element type.
typedef enum {
  GPUREPLAY_ELEMENT_TYPE_F32 = 0,
  GPUREPLAY_ELEMENT_TYPE_F16 = 1,
  GPUREPLAY_ELEMENT_TYPE_U8 = 2,
  GPUREPLAY_ELEMENT_TYPE_I8 = 3,
  GPUREPLAY_ELEMENT_TYPE_U16 = 4,
  GPUREPLAY_ELEMENT_TYPE_I16 = 5,
  GPUREPLAY_ELEMENT_TYPE_U32 = 6,
  GPUREPLAY_ELEMENT_TYPE_I32 = 7,
  GPUREPLAY_ELEMENT_TYPE_U64 = 8,
  GPUREPLAY_ELEMENT_TYPE_I64 = 9,
  GPUREPLAY_ELEMENT_TYPE_F64 = 10,
  GPUREPLAY_ELEMENT_TYPE_BOOL = 11,
} gpureplay_element_type;

// A verified recording. Threads may share it.
typedef struct gpureplay_recording gpureplay_recording;

// A recording on a device, for one thread at a time; another one gets an error.
typedef struct gpureplay_session gpureplay_session;

// A tensor. Elements are little-endian, in C order, without gaps.
typedef struct {
  // Valid until the recording is closed.
  const char *name;
  // Role.
  gpureplay_tensor_kind kind;
  // Element type.
  gpureplay_element_type element;
  // Size in bytes.
  size_t bytes;
  // Number of extents.
  size_t rank;
  // Extents, slowest dimension first; those beyond `rank` are 0.
  uint64_t shape[6];
} gpureplay_tensor_info;

// Session options. All zeros are the defaults.
typedef struct {
  // "best", "model", "model:GPU", "panfrost", "panthor", "kbase", "nano", "nano:shared", "devmem", "devmem:BOARD" or "optee"; null is the best one.
  const char *device;
  // Host threads of the model, up to 512; 0 is one per processor.
  uint32_t threads;
  // Messages of the model on standard error: 0 none, 1 faults, 2 also resets and jobs, 3 everything.
  uint32_t verbose;
  // Attempts after a failed one, per run.
  uint32_t retries;
  // Not 0: replay on a GPU other than the recorded one. Results may be wrong.
  uint32_t any_gpu;
} gpureplay_session_options;

// Times of a session's last run in seconds, and its device use.
typedef struct {
  // Loading, if the run had to.
  double load;
  // The run itself, all attempts. The rest beside the four phases below is the engine's own.
  double run;
  // Bytes that every run restores.
  double restore;
  // Inputs into GPU memory.
  double bind;
  // Chains, from start until their end is known.
  double device;
  // Outputs out of GPU memory.
  double read;
  // Attempts after the first.
  uint32_t retries;
  // Submitted chains.
  uint32_t chains;
} gpureplay_run_timing;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// This thread's last error: what, where, and what to do. Empty without one, and in an ended thread's destructors.
//
// Valid until this thread's next failing call, and no longer than the thread.
const char *gpureplay_last_error(void);

// Version of the library, such as "0.1.0".
const char *gpureplay_version(void);

// Reads and verifies a directory with a recording.gpr, such a file, a pack, or a recording of a CUDA run (DIR, or
// DIR#runK of several). Touches no device.
//
// # Safety
// `path` is a string; `recording` points to a pointer.
gpureplay_status gpureplay_open(const char *path, gpureplay_recording **recording);

// As gpureplay_open, but demands a signature by `key` with a counter of at least `minimum_counter`. The key is 64
// hexadecimal digits, the text of a PEM file, or the path of one.
//
// # Safety
// `path` and `key` are strings; `recording` points to a pointer.
gpureplay_status gpureplay_open_signed(const char *path,
                                       const char *key,
                                       uint64_t minimum_counter,
                                       gpureplay_recording **recording);

// Verifies a recording or a pack in memory. The bytes are copied.
//
// # Safety
// `data` points to `bytes` bytes; `recording` points to a pointer.
gpureplay_status gpureplay_open_bytes(const void *data, size_t bytes, gpureplay_recording **recording);

// Closes a recording. Open sessions keep what they need. Null is ignored.
//
// # Safety
// `recording` comes from gpureplay_open and is not used again.
void gpureplay_close(gpureplay_recording *recording);

// Number of tensors; 0 for a null pointer.
//
// # Safety
// `recording` comes from gpureplay_open.
size_t gpureplay_tensor_count(const gpureplay_recording *recording);

// Describes a tensor, by its index from 0.
//
// # Safety
// `recording` comes from gpureplay_open; `tensor` points to a structure.
gpureplay_status gpureplay_tensor(const gpureplay_recording *recording, size_t index, gpureplay_tensor_info *tensor);

// Number of layers for gpureplay_run_layers; 0 for a null pointer.
//
// # Safety
// `recording` comes from gpureplay_open.
size_t gpureplay_layer_count(const gpureplay_recording *recording);

// Layer name by index from 0; null if there is none. Valid until the recording is closed.
//
// # Safety
// `recording` comes from gpureplay_open.
const char *gpureplay_layer_name(const gpureplay_recording *recording, size_t index);

// Index of a layer for gpureplay_run_layers, by name or by number from 1 as in `gpureplay info`.
//
// # Safety
// `recording` comes from gpureplay_open; `name` is a string; `index` points to a number.
gpureplay_status gpureplay_layer(const gpureplay_recording *recording, const char *name, size_t *index);

// Opens a session; null options are the defaults. Fails if the GPU is not the recorded one, unless options allow
// it.
//
// # Safety
// `recording` comes from gpureplay_open; `options` is null or points to options; `session` points to a pointer.
gpureplay_status gpureplay_session_open(const gpureplay_recording *recording,
                                        const gpureplay_session_options *options,
                                        gpureplay_session **session);

// Closes a session and resets its GPU. Null is ignored.
//
// # Safety
// `session` comes from gpureplay_session_open and is not used again.
void gpureplay_session_close(gpureplay_session *session);

// Gives an input, weight or intermediate a value for all later runs, or a state its value for the next run. The
// bytes are copied. `element` is the data's gpureplay_element_type and must be the tensor's.
//
// # Safety
// `session` comes from gpureplay_session_open; `name` is a string; `data` points to `bytes` bytes.
gpureplay_status gpureplay_bind(gpureplay_session *session,
                                const char *name,
                                uint32_t element,
                                const void *data,
                                size_t bytes);

// Binds a file: .npy, .bin, .safetensors (FILE#NAME), .png or .jpg.
//
// # Safety
// `session` comes from gpureplay_session_open; `name` and `path` are strings.
gpureplay_status gpureplay_bind_file(gpureplay_session *session, const char *name, const char *path);

// Replaces every weight from a .safetensors file, or a directory with a NAME.npy for each.
//
// # Safety
// `session` comes from gpureplay_session_open; `path` is a string.
gpureplay_status gpureplay_bind_weights(gpureplay_session *session, const char *path);

// Takes a value away: weights and states get the recording's, intermediates their layer's.
//
// # Safety
// `session` comes from gpureplay_session_open; `name` is a string.
gpureplay_status gpureplay_unbind(gpureplay_session *session, const char *name);

// Resets every state to its value at opening.
//
// # Safety
// `session` comes from gpureplay_session_open.
gpureplay_status gpureplay_reset_states(gpureplay_session *session);

// Runs the whole network. The first run loads the recording.
//
// # Safety
// `session` comes from gpureplay_session_open.
gpureplay_status gpureplay_run(gpureplay_session *session);

// Runs the layers from `first` up to and without `end`. A range that begins at 0 begins a new inference. Layers
// between the one that ran last and `first` are skipped; what they would compute for these layers must be bound:
// if not, the call fails and gpureplay_last_error names it.
//
// # Safety
// `session` comes from gpureplay_session_open.
gpureplay_status gpureplay_run_layers(gpureplay_session *session, size_t first, size_t end);

// Whether layers may read what was neither computed nor bound (1) or not (0, the default): they find the
// recording's own memory.
//
// # Safety
// `session` comes from gpureplay_session_open.
gpureplay_status gpureplay_use_recorded_values(gpureplay_session *session, int yes);

// Keeps an intermediate's value when its layer ends, for gpureplay_read: later layers may reuse its memory.
//
// # Safety
// `session` comes from gpureplay_session_open; `name` is a string.
gpureplay_status gpureplay_keep(gpureplay_session *session, const char *name);

// Copies an output's value after a run, a state's for the next run, or any other tensor as it is in GPU memory
// now. `element` is the expected gpureplay_element_type and must be the tensor's.
//
// # Safety
// `session` comes from gpureplay_session_open; `name` is a string; `data` points to room for `bytes` bytes.
gpureplay_status gpureplay_read(gpureplay_session *session,
                                const char *name,
                                uint32_t element,
                                void *data,
                                size_t bytes);

// Times of the last run.
//
// # Safety
// `session` comes from gpureplay_session_open; `timing` points to a structure.
gpureplay_status gpureplay_timing(gpureplay_session *session, gpureplay_run_timing *timing);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* GPUREPLAY_H */
