/* A consumer of DLPack tensors in OpenCL's memory, by the text of dlpack.h 1.1 alone:
 *
 *   DLTensor::data         in OpenCL a cl_mem, to which nothing is added
 *   DLTensor::byte_offset  "the offset in bytes to the beginning pointer to data"
 *
 * It makes a sub-buffer with that origin, reads it by a queue of its own, and adds the digits up.
 * Nothing of the library under test is included, nor any header of OpenCL. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct { uint32_t major, minor; } Version;
typedef struct { int32_t device_type, device_id; } Device;
typedef struct { uint8_t code, bits; uint16_t lanes; } DataType;
typedef struct {
    void *data;
    Device device;
    int32_t ndim;
    DataType dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} Tensor;
typedef struct Managed {
    Version version;
    void *manager_ctx;
    void (*deleter)(struct Managed *);
    uint64_t flags;
    Tensor tensor;
} Managed;

/* CL/cl.h */
typedef struct _cl_mem *cl_mem;
extern int32_t clGetMemObjectInfo(cl_mem, uint32_t, size_t, void *, size_t *);
extern int32_t clGetContextInfo(void *, uint32_t, size_t, void *, size_t *);
extern void *clCreateCommandQueue(void *, void *, uint64_t, int32_t *);
extern cl_mem clCreateSubBuffer(cl_mem, uint64_t, uint32_t, const void *, int32_t *);
extern int32_t clEnqueueReadBuffer(void *, cl_mem, uint32_t, size_t, size_t, void *, uint32_t, const void *, void *);
extern int32_t clReleaseMemObject(cl_mem);
extern int32_t clReleaseCommandQueue(void *);
enum { MEM_CONTEXT = 0x1106, CONTEXT_DEVICES = 0x1081, READ_ONLY = 1 << 2, REGION = 0x1220, OPENCL = 4 };

/* The sum of a tensor's 32-bit digits, or an error of OpenCL; -1 for another tensor. It is deleted
 * where it was read. `keeps` is 1 for a consumer that heeds byte_offset, else 0. */
int32_t consumer_sum(Managed *managed, int32_t keeps, uint64_t *sum) {
    const Tensor *tensor = &managed->tensor;
    if (managed->version.major != 1 || tensor->device.device_type != OPENCL || tensor->dtype.bits != 32 || tensor->ndim != 1)
        return -1;
    cl_mem whole = tensor->data;
    void *context = NULL, *devices[16] = {0};
    int32_t answer = clGetMemObjectInfo(whole, MEM_CONTEXT, sizeof context, &context, NULL);
    if (answer == 0) answer = clGetContextInfo(context, CONTEXT_DEVICES, sizeof devices, devices, NULL);
    if (answer != 0) return answer;
    void *queue = clCreateCommandQueue(context, devices[0], 0, &answer);
    if (answer != 0) return answer;
    size_t count = (size_t)tensor->shape[0], region[2] = {keeps ? (size_t)tensor->byte_offset : 0, 4 * count};
    cl_mem part = clCreateSubBuffer(whole, READ_ONLY, REGION, region, &answer);
    if (answer == 0) {
        uint32_t *digits = malloc(4 * count);
        answer = clEnqueueReadBuffer(queue, part, 1, 0, 4 * count, digits, 0, NULL, NULL);
        *sum = 0;
        for (size_t i = 0; i < count; i++) *sum += digits[i];
        free(digits);
        clReleaseMemObject(part);
    }
    clReleaseCommandQueue(queue);
    if (answer == 0) managed->deleter(managed);
    return answer;
}
