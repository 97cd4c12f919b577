//! The shaders, compiled when a test runs.

use contigo::OperandSpec;
use contigo::job::Parameter::{Operand, Words};
use contigo::job::Signature;
use std::fs;
use std::process::Command;

/// `to[i] = from[i] ^ key`, word by word.
pub(crate) const XOR: &str = "#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer From { uint from[]; };
layout(set = 0, binding = 1) writeonly buffer To { uint to[]; };
layout(push_constant) uniform Args { uint count; uint key; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < count) to[i] = from[i] ^ key;
}";

/// `data[i] = data[i] * by + gl_NumWorkGroups.y`, in place.
pub(crate) const SCALE: &str = "#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Data { uint data[]; };
layout(push_constant) uniform Args { uint count; uint by; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < count && gl_WorkGroupID.y == 0) data[i] = data[i] * by + gl_NumWorkGroups.y;
}";

/// `to` gets `count` bytes of `from`, each from byte `skip` on or to byte `skip` on.
pub(crate) const BYTES: &str = "#version 450
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer From { uint8_t from[]; };
layout(set = 0, binding = 1) writeonly buffer To { uint8_t to[]; };
layout(push_constant) uniform Args { uint count; uint from_skip; uint to_skip; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < count) to[to_skip + i] = from[from_skip + i];
}";

/// It goes on until word 0 is changed, which no one does. A software device ends each loop after a
/// while; so many workgroups of it do not end within a lifetime.
pub(crate) const ENDLESS: &str = "#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) coherent volatile buffer Data { uint data[]; };
void main() {
    while (data[0] != 0xFFFFFFFFu) data[1 + gl_LocalInvocationID.x] += 1u;
}";

/// Writes how many words its operand has.
pub(crate) const LENGTH: &str = "#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Data { uint data[]; };
void main() { if (gl_GlobalInvocationID.x == 0) data[0] = data.length(); }";

/// Its workgroup has 32 by 2 threads.
pub(crate) const FLAT: &str = "#version 450
layout(local_size_x = 32, local_size_y = 2) in;
layout(set = 0, binding = 0) buffer Data { uint data[]; };
void main() { data[gl_LocalInvocationIndex] = 1; }";

/// `xor(from, to, count, key)`: `count` words of each.
pub(crate) fn xor() -> Signature {
    let (from, to) = (Operand(OperandSpec::to_device()), Operand(OperandSpec::from_device()));
    Signature::new("xor", &[from, to, Words(1), Words(1)])
        .unwrap()
        .sized(0, 4, &[0])
        .unwrap()
        .sized(1, 4, &[0])
        .unwrap()
}

/// `scale(data, count, by)`.
pub(crate) fn scale() -> Signature {
    Signature::new("scale", &[Operand(OperandSpec::in_out()), Words(1), Words(1)])
        .unwrap()
        .sized(0, 4, &[0])
        .unwrap()
}

/// SPIR-V, or why there is none here.
pub(crate) fn compiled(glsl: &str) -> Result<Vec<u8>, String> {
    compiled_for("vulkan1.1", glsl)
}

/// The same for another version: it names a storage buffer otherwise.
pub(crate) fn compiled_for(version: &str, glsl: &str) -> Result<Vec<u8>, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (from, to) = (folder.path().join("shader.comp"), folder.path().join("shader.spv"));
    fs::write(&from, glsl).map_err(|error| error.to_string())?;
    let compiler = Command::new("glslangValidator")
        .args(["-V", "--target-env", version, "-o"])
        .args([&to, &from])
        .output();
    let said = compiler.map_err(|_| "glslangValidator is not installed".to_owned())?;
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stdout));
    fs::read(to).map_err(|error| error.to_string())
}
