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

// How a call ended. The numbers are those of the command's exit codes.
typedef enum {
  // Done.
  GPUREPLAY_STATUS_OK = 0,
  // The arguments make no sense for this recording.
  GPUREPLAY_STATUS_USAGE = 2,
  // The recording is damaged, not allowed, or not a recording.
  GPUREPLAY_STATUS_RECORDING = 3,
  // An input or another file is missing or does not fit.
  GPUREPLAY_STATUS_INPUT = 4,
  // The device could not be used, or the replay failed on it. The GPU was reset; the next run starts afresh.
  GPUREPLAY_STATUS_DEVICE = 5,
  // A result could not be written.
  GPUREPLAY_STATUS_OUTPUT = 6,
  // A bug in the library.
  GPUREPLAY_STATUS_PANIC = 7,
} gpureplay_status;

// Part of a tensor in the computation.
typedef enum {
  // Must be bound before a run.
  GPUREPLAY_TENSOR_KIND_INPUT = 0,
  // Can be read after a run.
  GPUREPLAY_TENSOR_KIND_OUTPUT = 1,
  // Has a value in the recording or in a file beside it, and may be bound.
  GPUREPLAY_TENSOR_KIND_WEIGHT = 2,
  // Computed by a layer; may be read after it, and replaced.
  GPUREPLAY_TENSOR_KIND_INTERMEDIATE = 3,
  // A run changes it, and the next run starts from what it left.
  GPUREPLAY_TENSOR_KIND_STATE = 4,
} gpureplay_tensor_kind;

// Type of elements.
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

// A recording that was read and verified. Threads may share it.
typedef struct gpureplay_recording gpureplay_recording;

// A recording on a device. One thread at a time may use it; another one that tries meanwhile gets an error.
typedef struct gpureplay_session gpureplay_session;

// A tensor of a recording. Elements are little-endian, in C order, without gaps.
typedef struct {
  // Name; valid until the recording is closed.
  const char *name;
  // Its part in the computation.
  gpureplay_tensor_kind kind;
  // Type of its elements.
  gpureplay_element_type element;
  // Size of its elements in bytes.
  size_t bytes;
  // Number of extents.
  size_t rank;
  // Extents, slowest dimension first; those beyond `rank` are 0.
  uint64_t shape[6];
} gpureplay_tensor_info;

// Choices for a session. All zeros are the defaults.
typedef struct {
  // "best", "model", "model:GPU", "panfrost", "panthor", "kbase", "nano", "nano:shared", "devmem", "devmem:BOARD" or "optee"; null is the best one.
  const char *device;
  // Host threads that the model uses, up to 512; 0 is one per processor.
  uint32_t threads;
  // Messages of the model on standard error: 0 none, 1 faults, 2 also resets and jobs, 3 everything.
  uint32_t verbose;
  // Attempts after a failed one, for each run.
  uint32_t retries;
  // Not 0: replay on a GPU that is not the one that was recorded. Results may be wrong.
  uint32_t any_gpu;
} gpureplay_session_options;

// Times of a session's last run in seconds, and what it asked of the device.
typedef struct {
  // Putting the recording on the device, where the run had to.
  double load;
  // The run itself, all attempts. What is not in the four phases below is the engine's own.
  double run;
  // Bytes that every run restores.
  double restore;
  // Inputs into GPU memory.
  double bind;
  // Chains, from their start until their end is known.
  double device;
  // Outputs out of GPU memory.
  double read;
  // Attempts after the first.
  uint32_t retries;
  // Chains that were submitted.
  uint32_t chains;
} gpureplay_run_timing;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// What went wrong in the last call of this thread that failed: what, where, and what to do. An empty text if none failed, and in a
// thread that has ended but for its destructors.
//
// The text is valid until the next call of this thread that fails, and no longer than the thread.
const char *gpureplay_last_error(void);

// Version of the library, such as "0.1.0".
const char *gpureplay_version(void);

// Reads and verifies a recording: a directory with a recording.gpr, such a file, a pack, or a recording of a CUDA run (DIR, or DIR#runK of several). Nothing touches a device.
//
// # Safety
// `path` is a string; `recording` points to a pointer.
gpureplay_status gpureplay_open(const char *path,
                                gpureplay_recording **recording);

// As gpureplay_open, but refuses what the owner of `key` has not signed, or has signed with a counter below `minimum_counter`. The key
// is 64 hexadecimal digits, the text of a PEM file, or the path of one.
//
// # Safety
// `path` and `key` are strings; `recording` points to a pointer.
gpureplay_status gpureplay_open_signed(const char *path,
                                       const char *key,
                                       uint64_t minimum_counter,
                                       gpureplay_recording **recording);

// Verifies a recording, or a pack, that is in memory. The bytes are copied.
//
// # Safety
// `data` points to `bytes` bytes; `recording` points to a pointer.
gpureplay_status gpureplay_open_bytes(const void *data, size_t bytes, gpureplay_recording **recording);

// Closes a recording. Sessions that are open keep what they need. Null is ignored.
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

// Number of layers, the parts that gpureplay_run_layers runs; 0 for a null pointer.
//
// # Safety
// `recording` comes from gpureplay_open.
size_t gpureplay_layer_count(const gpureplay_recording *recording);

// Name of a layer, by its index from 0; null if there is none. Valid until the recording is closed.
//
// # Safety
// `recording` comes from gpureplay_open.
const char *gpureplay_layer_name(const gpureplay_recording *recording, size_t index);

// The index of a layer, for gpureplay_run_layers: of a name, or of a number from 1 as `gpureplay info` counts them.
//
// # Safety
// `recording` comes from gpureplay_open; `name` is a string; `index` points to a number.
gpureplay_status gpureplay_layer(const gpureplay_recording *recording, const char *name, size_t *index);

// Opens a session; null options are the defaults. Fails if the device is not the GPU that was recorded, unless the options allow it.
//
// # Safety
// `recording` comes from gpureplay_open; `options` is null or points to options; `session` points to a pointer.
gpureplay_status gpureplay_session_open(const gpureplay_recording *recording,
                                        const gpureplay_session_options *options,
                                        gpureplay_session **session);

// Closes a session; its GPU is reset. Null is ignored.
//
// # Safety
// `session` comes from gpureplay_session_open and is not used again.
void gpureplay_session_close(gpureplay_session *session);

// Gives an input, a weight or an intermediate tensor a value, for all runs that follow, or a state the value that the next run starts
// from. The bytes are copied. `element` is the
// gpureplay_element_type of the data and must be the tensor's.
//
// # Safety
// `session` comes from gpureplay_session_open; `name` is a string; `data` points to `bytes` bytes.
gpureplay_status gpureplay_bind(gpureplay_session *session,
                                const char *name,
                                uint32_t element,
                                const void *data,
                                size_t bytes);

// Binds what is in a file: .npy, .bin, .safetensors (FILE#NAME), .png or .jpg.
//
// # Safety
// `session` comes from gpureplay_session_open; `name` and `path` are strings.
gpureplay_status gpureplay_bind_file(gpureplay_session *session, const char *name, const char *path);

// Gives every weight another value: from a .safetensors file, or from a directory with a NAME.npy for each.
//
// # Safety
// `session` comes from gpureplay_session_open; `path` is a string.
gpureplay_status gpureplay_bind_weights(gpureplay_session *session, const char *path);

// Takes a value away: a weight and a state have the recording's again, an intermediate what its layer computes.
//
// # Safety
// `session` comes from gpureplay_session_open; `name` is a string.
gpureplay_status gpureplay_unbind(gpureplay_session *session, const char *name);

// Gives every state the value again that it has when the recording is opened.
//
// # Safety
// `session` comes from gpureplay_session_open.
gpureplay_status gpureplay_reset_states(gpureplay_session *session);

// Runs the whole network. The first run loads the recording onto the device.
//
// # Safety
// `session` comes from gpureplay_session_open.
gpureplay_status gpureplay_run(gpureplay_session *session);

// Runs the layers from `first` up to and without `end`. A range that begins at 0 begins a new inference. Layers between the one
// that ran last and `first` do not run; what they would have computed, and these layers read, must be bound: if not, the call fails and
// gpureplay_last_error names it.
//
// # Safety
// `session` comes from gpureplay_session_open.
gpureplay_status gpureplay_run_layers(gpureplay_session *session,
                                      size_t first,
                                      size_t end);

// Whether layers may read what nobody computed or bound (1) or not (0, as at first): they find what the recording itself has in that
// memory.
//
// # Safety
// `session` comes from gpureplay_session_open.
gpureplay_status gpureplay_use_recorded_values(gpureplay_session *session,
                                               int yes);

// Keeps the value that an intermediate tensor has when its layer ends, for gpureplay_read: later layers may reuse its memory.
//
// # Safety
// `session` comes from gpureplay_session_open; `name` is a string.
gpureplay_status gpureplay_keep(gpureplay_session *session,
                                const char *name);

// Copies the value of an output after a run, what the next run starts from of a state, or another tensor as it is in GPU memory now. `element` is the
// gpureplay_element_type that is expected and must be the tensor's.
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
