// gemm8 (examples/gemm8/README.md, "Operands and limits" and "Arithmetic") as a kernel of OpenCL C 1.2, which the GPU's own driver compiles.
//
// N and K are multiples of 16, and operands of 64 bytes. A work-item computes four neighbours of a row, and goes on with every so many-th four:
// any grid is right.

// Of `flags`, as in gemm8.cu.
#define RELU 1u
#define INT8 2u

// What becomes of four sums: `contigo_gemm8::requantize`. A sum and its rounding constant take 33 bits; half a unit is the bit below the shift.
int4 requantize(int4 sum, uint flags) {
    if (flags & RELU) sum = max(sum, 0);
    if (!(flags & INT8)) return sum;
    int shift = flags >> 8 & 31;
    int4 rounded = shift == 0 ? sum : (sum >> shift) + (sum >> (shift - 1) & 1);
    return clamp(rounded, -128, 127);
}

__kernel void gemm8(__global const char4 *restrict a, __global const char4 *restrict b, __global const int4 *restrict bias,
                    __global void *restrict c, uint m, uint n, uint k, uint flags) {
    uint columns = n / 4, steps = k / 4;
    for (uint at = get_global_id(0); at < m * columns; at += get_global_size(0)) {
        uint row = at / columns, column = at % columns;
        // Unsigned, because the sum wraps, and a signed one that does is undefined.
        uint4 sum = as_uint4(bias[column]);
        for (uint step = 0; step < steps; step++) {
            int4 left = convert_int4(a[row * steps + step]);
            __global const char4 *right = b + 4 * step * columns + column;
            sum += as_uint4(left.x * convert_int4(right[0]));
            sum += as_uint4(left.y * convert_int4(right[columns]));
            sum += as_uint4(left.z * convert_int4(right[2 * columns]));
            sum += as_uint4(left.w * convert_int4(right[3 * columns]));
        }
        int4 value = requantize(as_int4(sum), flags);
        if (flags & INT8) ((__global char4 *)c)[at] = convert_char4(value);
        else ((__global int4 *)c)[at] = value;
    }
}
