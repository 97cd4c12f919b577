#version 450
// gemm8 (examples/gemm8/README.md, "Operands and limits" and "Arithmetic") as a compute shader of Vulkan. A GPU runs gemm8.spv, which
// `examples/gemm8/kernels/spirv` makes of this file; README.md there says how it is launched.
//
// N and K are multiples of 16, and operands of 64 bytes. So all of it goes by words of four bytes, and no GPU needs an extension for int8.
// An invocation computes four neighbours of a row, and goes on with every so many-th four: any grid is right.
layout(local_size_x = 64) in;

layout(std430, set = 0, binding = 0) readonly restrict buffer A { uint a[]; };
layout(std430, set = 0, binding = 1) readonly restrict buffer B { uint b[]; };
layout(std430, set = 0, binding = 2) readonly restrict buffer Bias { int bias[]; };
layout(std430, set = 0, binding = 3) writeonly restrict buffer C { uint c[]; };
layout(push_constant) uniform Job { uint m, n, k, flags; };

// Of `flags`, as in gemm8.cu.
const uint RELU = 1u, INT8 = 2u;

// The four int8 of a word, the low one first.
ivec4 bytes(uint word) {
    return ivec4(bitfieldExtract(int(word), 0, 8), bitfieldExtract(int(word), 8, 8), bitfieldExtract(int(word), 16, 8), int(word) >> 24);
}

// What becomes of one sum: `contigo_gemm8::requantize`. The sum and its rounding constant take 33 bits, which are not here: half a unit is the
// bit below the shift.
int requantize(int sum) {
    if ((flags & RELU) != 0u) sum = max(sum, 0);
    if ((flags & INT8) == 0u) return sum;
    uint shift = flags >> 8 & 31u;
    int rounded = shift == 0u ? sum : (sum >> shift) + (sum >> (shift - 1u) & 1);
    return clamp(rounded, -128, 127);
}

void main() {
    uint columns = n / 4u, steps = k / 4u;
    for (uint at = gl_GlobalInvocationID.x; at < m * columns; at += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
        uint row = at / columns, column = at % columns;
        ivec4 sum = ivec4(bias[4u * column], bias[4u * column + 1u], bias[4u * column + 2u], bias[4u * column + 3u]);
        // 32-bit products and sums wrap (GLSL 4.50, 4.1.3).
        for (uint step = 0u; step < steps; step++) {
            ivec4 left = bytes(a[row * steps + step]);
            for (uint inner = 0u; inner < 4u; inner++) sum += left[inner] * bytes(b[(4u * step + inner) * columns + column]);
        }
        ivec4 value = ivec4(requantize(sum.x), requantize(sum.y), requantize(sum.z), requantize(sum.w));
        if ((flags & INT8) != 0u) {
            uvec4 low = uvec4(value) & 255u;
            c[at] = low.x | low.y << 8 | low.z << 16 | low.w << 24;
        } else {
            for (uint inner = 0u; inner < 4u; inner++) c[4u * at + inner] = uint(value[inner]);
        }
    }
}
