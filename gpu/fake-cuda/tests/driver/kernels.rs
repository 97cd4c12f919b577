//! Modules and kernels: what is no PTX is refused, and each kernel does what its PTX says; one that
//! may wait for the CPU goes on while the CPU does.

use super::*;
use std::{
    ffi::{CStr, c_char, c_void},
    ptr,
    time::Instant,
};

#[test]
fn modules_are_ptx_with_entries() {
    let cuda = current(&Config::default());
    assert_eq!(load(c"not PTX"), Err(code::INVALID_PTX));
    assert_eq!(
        load(c".version 7.0 .target sm_90 .visible .entry a() { ret; }"),
        Err(code::INVALID_PTX)
    );
    let module = load(PTX).unwrap();
    for name in [c"gemm8", c"copy_bytes", c"fill_bytes", c"unknown"] {
        assert_eq!(function(module, name), function(module, name));
    }
    assert_eq!([function(module, c"hidden"), function(module, c"")], [Err(code::NOT_FOUND); 2]);
    let fill = function(module, c"fill_bytes").unwrap();
    assert_eq!(launch(function(module, c"unknown").unwrap(), 0, []), OK);
    assert_eq!(cu!(cuModuleUnload(module => Handle)), OK);
    assert_eq!(cu!(cuModuleUnload(module => Handle)), code::INVALID_HANDLE);
    assert_eq!(function(module, c"gemm8"), Err(code::INVALID_HANDLE));
    assert_eq!(launch(fill, 0, [0, 0, 0]), code::INVALID_HANDLE);
    assert_eq!(cuda.counters().modules, 0);
}

#[test]
fn the_compiler_says_what_it_does_not_take() {
    let _cuda = current(&Config::default());
    let mut log = [0x7F_u8; 64];
    let mut options = [5_u32, 6];
    let mut values = [log.as_mut_ptr().cast::<c_void>(), ptr::without_provenance_mut(48)];
    let (mut module, image) = (0, c"nothing".as_ptr());
    let answer = cu!(cuModuleLoadDataEx(
        &mut module => &mut Handle, image => *const c_char, 2 => u32,
        options.as_mut_ptr() => *mut u32, values.as_mut_ptr() => *mut *mut c_void,
    ));
    assert_eq!(answer, code::INVALID_PTX);
    assert_eq!(
        CStr::from_bytes_until_nul(&log).unwrap(),
        c"ptxas application ptx input, line 1; fatal   : "
    );
    assert_eq!((log[48], values[1].addr()), (0x7F, 48));
}

#[test]
fn launches_are_checked() {
    let _cuda = current(&Config::default());
    let fill = fill_bytes();
    let mut value = 0_u64;
    let mut params = [ptr::from_mut(&mut value).cast::<c_void>(); 3];
    let mut as_is = |grid, block| launch_as(fill, grid, block, 0, params.as_mut_ptr());
    assert_eq!(as_is([1, 1, 1], [0, 1, 1]), code::INVALID_VALUE);
    assert_eq!(as_is([1, 0, 1], [1, 1, 1]), code::INVALID_VALUE);
    assert_eq!(as_is([1, 1, 1], [1024, 2, 1]), code::INVALID_VALUE);
    assert_eq!(as_is([1, 65536, 1], [1, 1, 1]), code::INVALID_VALUE);
    assert_eq!(as_is([65536, 1, 1], [1024, 1, 1]), OK);
    assert_eq!(launch_as(fill, [1; 3], [1; 3], 0, ptr::null_mut()), code::INVALID_VALUE);
    assert_eq!(launch(fill, 0x99, [0, 0, 0]), code::INVALID_HANDLE);
    assert_eq!(launch(0x99, 0, [0, 0, 0]), code::INVALID_HANDLE);
}

/// `wait(flag, out)`: writes 1 to `out`, waits until `flag` is not 0, and adds its value to `out`.
const WAIT: &CStr = c".version 6.0
.target sm_53
.visible .entry wait(.param .u64 flag, .param .u64 out) {
.reg .pred %p<1>; .reg .b32 %r<2>; .reg .b64 %rd<2>;
ld.param.u64 %rd0, [flag]; ld.param.u64 %rd1, [out];
st.volatile.global.u32 [%rd1], 1;
again: ld.volatile.global.u32 %r0, [%rd0]; setp.eq.s32 %p0, %r0, 0; @%p0 bra again;
add.s32 %r1, %r0, 1; st.volatile.global.u32 [%rd1], %r1;
}";

#[test]
fn kernel_follows_ptx_and_waits_for_cpu() {
    let cuda = current(&Config { kernel_polls: 0, wait_bound_us: 10_000, ..Config::default() });
    let wait = function(load(WAIT).unwrap(), c"wait").unwrap();
    let [flag, out] = [pin(4, DEVICEMAP), pin(4, DEVICEMAP)].map(Result::unwrap);
    // SAFETY: the test's own memory.
    unsafe { flag.write_bytes(0, 4) };
    let [flag_at, out_at] = [flag, out].map(|p| device_pointer(p).unwrap());
    assert_eq!(launch_as(wait, [1; 3], [1; 3], 0, ptr::null_mut()), code::INVALID_VALUE);
    assert_eq!(launch(wait, 0, [flag_at, out_at]), OK);
    assert_eq!(
        [query(0), query(0), synchronize(0)],
        [code::NOT_READY, code::NOT_READY, code::LAUNCH_TIMEOUT]
    );
    assert_eq!((byte(out, 0), cuda.counters().kernels_done, cuda.counters().queued), (1, 0, 1));
    // It goes on without a call.
    // SAFETY: as above.
    unsafe { flag.write(6) };
    let since = Instant::now();
    while byte(out, 0) != 7 {
        assert!(since.elapsed().as_secs() < 10, "{}", byte(out, 0));
    }
    assert_eq!((synchronize(0), cuda.counters().kernels_done), (OK, 1));
    // It uses whatever a parameter points into, and nothing else.
    // SAFETY: as above.
    unsafe { flag.write(0) };
    assert_eq!(launch(wait, 0, [flag_at, out_at]), OK);
    assert_eq!(free(out), OK);
    assert_eq!(cuda.counters().freed_under_a_kernel, 1);
    assert_eq!(query(0), code::ILLEGAL_ADDRESS);
}

/// Adds 1 to the word at `out`, waits until the one at `flag` is not 0, and adds 16.
const COUNT: &CStr = c".version 6.0
.target sm_53
.visible .entry count(.param .u64 flag, .param .u64 out) {
.reg .pred %p<1>; .reg .b32 %r<2>; .reg .b64 %rd<2>;
ld.param.u64 %rd0, [flag]; ld.param.u64 %rd1, [out];
ld.global.u32 %r1, [%rd1]; add.s32 %r1, %r1, 1; st.global.u32 [%rd1], %r1;
again: ld.volatile.global.u32 %r0, [%rd0]; setp.eq.s32 %p0, %r0, 0; @%p0 bra again;
ld.global.u32 %r1, [%rd1]; add.s32 %r1, %r1, 16; st.global.u32 [%rd1], %r1;
}";

#[test]
fn waiting_kernel_repeats_nothing_done() {
    let cuda = current(&Config { kernel_polls: 0, ..Config::default() });
    let count = function(load(COUNT).unwrap(), c"count").unwrap();
    let [flag, out] = [pin(4, DEVICEMAP), pin(4, DEVICEMAP)].map(Result::unwrap);
    // SAFETY: the test's own memory.
    [flag, out].iter().for_each(|p| unsafe { p.write_bytes(0, 4) });
    let mut values = [flag, out].map(|p| device_pointer(p).unwrap());
    let mut params = values.each_mut().map(|value| ptr::from_mut(value).cast());
    assert_eq!(launch_as(count, [1; 3], [1; 3], 0, params.as_mut_ptr()), OK);
    for _ in 0..20 {
        assert_eq!(query(0), code::NOT_READY);
        assert_eq!(byte(out, 0), 1);
    }
    // SAFETY: as above.
    unsafe { flag.write(1) };
    assert_eq!((synchronize(0), byte(out, 0), cuda.counters().kernels_done), (OK, 17, 1));
}
