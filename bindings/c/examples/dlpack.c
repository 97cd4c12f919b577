/* A frame loop with a framework in it: a device fills a buffer, a framework reads the same bytes as
 * a DLPack tensor, and the device gets the buffer again.
 *
 *     cc -std=c11 dlpack.c $(pkg-config --cflags --libs contigo) -o dlpack && ./dlpack
 *
 * The framework here is three functions that know dlpack.h and nothing of Contigo. It makes a
 * tensor of its own over one row of the tensor that it was given, as a slice in a framework does.
 * contigo_tensor_locate finds out which bytes of the region that row is, and contigo_dev_addr_of
 * answers its bus address. While a tensor is out, the device does not get the buffer. */

#include "check.h"
#include <contigo.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* dlpack.h 1.1, as a framework brings it along. */
enum { kDLCPU = 1, kDLInt = 0, DLPACK_MAJOR_VERSION = 1 };
typedef struct {
    uint32_t major, minor;
} DLPackVersion;
typedef struct {
    int32_t device_type, device_id;
} DLDevice;
typedef struct {
    uint8_t code, bits;
    uint16_t lanes;
} DLDataType;
typedef struct {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensorVersioned {
    DLPackVersion version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    DLTensor dl_tensor;
} DLManagedTensorVersioned;

enum { M = 4, N = 16, K = 64, FRAME_BYTES = M * N * 4, SLOT = 4096, SLOTS = 4, FRAMES = 8, TIMEOUT_US = 20 * 1000 };

/* The framework: int32, two dimensions, the CPU's. Its strides count elements. */
static int framework_takes(const DLManagedTensorVersioned *managed)
{
    const DLTensor *tensor = &managed->dl_tensor;
    return managed->version.major == DLPACK_MAJOR_VERSION && tensor->device.device_type == kDLCPU && tensor->ndim == 2
        && tensor->dtype.code == kDLInt && tensor->dtype.bits == 32 && tensor->dtype.lanes == 1;
}

/* The framework: the sum of the elements. */
static int64_t framework_sum(const DLTensor *tensor)
{
    const int32_t *first = (const int32_t *)((const char *)tensor->data + tensor->byte_offset);
    int64_t sum = 0;
    for (int64_t row = 0; row < tensor->shape[0]; row++)
        for (int64_t column = 0; column < tensor->shape[1]; column++)
            sum += first[row * tensor->strides[0] + column * tensor->strides[1]];
    return sum;
}

/* The framework: one row of a tensor, with the shape in room and no copy. It has no deleter: it
 * lives on the caller's stack. */
static DLManagedTensorVersioned framework_row(const DLManagedTensorVersioned *managed, int64_t row, int64_t room[2])
{
    DLManagedTensorVersioned part = {.version = managed->version, .flags = managed->flags, .dl_tensor = managed->dl_tensor};
    room[0] = 1;
    room[1] = managed->dl_tensor.shape[1];
    part.dl_tensor.shape = room;
    part.dl_tensor.data = (int32_t *)part.dl_tensor.data + row * part.dl_tensor.strides[0];
    return part;
}

int main(void)
{
    contigo_sim sim = 0;
    contigo_port port = 0;
    contigo_region region = 0;
    contigo_pool pool = 0;
    contigo_engine engine = 0;
    contigo_device device = 0;
    contigo_buf a = 0, c = 0;

    contigo_sim_options board = {.struct_size = sizeof board, .seed = 5};
    CHECK(contigo_sim_open(&board, &sim));
    CHECK(contigo_sim_port(sim, 0, &port));
    CHECK(contigo_sim_device(sim, "zdma", &device));
    CHECK(contigo_device_memory(device, "sim", 64 * 1024, &region));
    CHECK(contigo_pool_open(region, SLOT, SLOTS, 256, &pool));
    contigo_engine_options options = {.struct_size = sizeof options, .driver = "zdma", .device = device, .port = port};
    CHECK(contigo_engine_open(&options, &engine));
    CHECK(contigo_pool_take(pool, &a));
    CHECK(contigo_pool_take(pool, &c));
    const contigo_operand operands[2] = {{.buf = a, .len_bytes = FRAME_BYTES}, {.buf = c, .len_bytes = FRAME_BYTES}};
    const int64_t shape[2] = {M, N};
    contigo_tensor_options as_tensor = {.struct_size = sizeof as_tensor, .shape = shape, .ndim = 2, .dtype_code = kDLInt, .dtype_bits = 32,
                                        .align_bytes = 64};

    unsigned wrong = 0;
    contigo_status refusal = CONTIGO_OK;
    char text[1024] = "";
    printf("frame  sum of C  its row  sum of the row  row at bus address  the device, meanwhile\n");
    for (int frame = 0; frame < FRAMES; frame++) {
        contigo_job job = 0;
        void *lent;
        const int number = frame % M;
        int64_t row_shape[2];
        uint64_t row_addr, device_addr;

        /* The CPU's turn: it makes a camera's frame. Then the device's: it fills C. */
        int32_t *elements = map(a, CONTIGO_WRITE);
        for (int at = 0; at < M * N; at++)
            elements[at] = K * (frame + at / N) + at % N;
        CHECK(contigo_buf_unmap(a));
        CHECK(contigo_job_start(engine, operands, 2, NULL, 0, 0, &job));
        CHECK(contigo_job_wait(job, TIMEOUT_US, NULL));

        /* The framework's turn, on the same bytes. */
        CHECK(contigo_buf_lend(c, &as_tensor, &lent));
        DLManagedTensorVersioned *tensor = lent;
        if (!framework_takes(tensor)) {
            printf("the framework does not take the tensor\n");
            return EXIT_FAILURE;
        }
        DLManagedTensorVersioned row = framework_row(tensor, number, row_shape);
        const int64_t sum = framework_sum(&tensor->dl_tensor), row_sum = framework_sum(&row.dl_tensor);

        /* Which bytes of the region is the framework's row? Its elements begin where its data
         * pointer says. */
        contigo_tensor_info found = {.struct_size = sizeof found};
        CHECK(contigo_tensor_locate(region, &row, 0, 64, &found));
        CHECK(contigo_dev_addr_of(region, port, row.dl_tensor.data, found.len_bytes, &row_addr));
        wrong += found.len_bytes != N * sizeof(int32_t);

        /* The device does not get it: neither in a job nor by its address. */
        refusal = contigo_job_start(engine, operands, 2, NULL, 0, 0, &job);
        wrong += refusal != CONTIGO_E_TENSOR_OUT;
        refusal = contigo_buf_give(c, port, 0, SLOT, CONTIGO_WRITES, NULL);
        wrong += refusal != CONTIGO_E_TENSOR_OUT;
        contigo_last_error(text, sizeof text);
        wrong += contigo_buf_unlend(c) != CONTIGO_E_TENSOR_OUT;

        /* The framework is done, and the buffer is the program's again. */
        tensor->deleter(tensor);
        CHECK(contigo_buf_unlend(c));

        /* The device's turn again: the row of C that the program means is where the framework's row
         * was found. */
        contigo_buf_info place = {.struct_size = sizeof place};
        CHECK(contigo_buf_get_info(c, &place));
        wrong += found.offset_bytes != place.offset_bytes + (size_t)number * N * sizeof(int32_t);
        CHECK(contigo_buf_give(c, port, (size_t)number * N * sizeof(int32_t), N * sizeof(int32_t), CONTIGO_READS | CONTIGO_WRITES, &device_addr));
        CHECK(contigo_buf_take_back(c));
        wrong += device_addr != row_addr;

        /* C[row][column] is K times the row's number, and the column. */
        int64_t expected = 0;
        for (int row_number = 0; row_number < M; row_number++)
            expected += N * K * (frame + row_number) + N * (N - 1) / 2;
        wrong += sum != expected;
        wrong += row_sum != N * K * (frame + number) + N * (N - 1) / 2;
        printf("%5d  %8" PRId64 "  %7d  %14" PRId64 "  %#18" PRIx64 "  %s\n", frame, sum, number, row_sum, row_addr,
               contigo_status_name(refusal));
    }
    printf("the device, meanwhile: %s: %s\n", contigo_status_name(refusal), text);

    /* A tensor that lies elsewhere has no bytes of the region. */
    int32_t elsewhere[N] = {0};
    int64_t one_row[2] = {1, N}, strides[2] = {N, 1};
    DLManagedTensorVersioned foreign = {
        .version = {DLPACK_MAJOR_VERSION, 1},
        .dl_tensor = {.data = elsewhere, .device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLInt, 32, 1}, .shape = one_row, .strides = strides},
    };
    contigo_tensor_info nowhere = {.struct_size = sizeof nowhere};
    contigo_status status = contigo_tensor_locate(region, &foreign, 0, 0, &nowhere);
    say(stdout, "a tensor of the program's stack", status);
    wrong += status != CONTIGO_E_NOT_OURS;

    contigo_region_info counts = {.struct_size = sizeof counts};
    CHECK(contigo_region_get_info(region, &counts));
    wrong += counts.bytes_copied != 0;
    printf("%d frames, %u wrong, bytes copied: %" PRIu64 "\n", FRAMES, wrong, counts.bytes_copied);

    CHECK(contigo_buf_release(a));
    CHECK(contigo_buf_release(c));
    CHECK(contigo_engine_close(engine));
    CHECK(contigo_pool_close(pool));
    CHECK(contigo_region_close(region));
    CHECK(contigo_device_close(device));
    CHECK(contigo_port_close(port));
    CHECK(contigo_sim_close(sim));
    return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
