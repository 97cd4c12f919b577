//! Contexts.

use super::{Out, put};
use crate::context::{current, with_stack};
use crate::state::{Answer, Handle, Needs, State, call};
use crate::stream::wait;
use crate::{Code, Function, code};
use std::ffi::c_int;

/// CU_CTX_SCHED_* (4 is a value, 1 and 2 are), MAP_HOST, LMEM_RESIZE_TO_MAX, COREDUMP_ENABLE,
/// USER_COREDUMP_ENABLE, SYNC_MEMOPS.
const FLAGS: u32 = 0xFF;
const SCHED_MASK: u32 = 0x7;

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuDevicePrimaryCtxRetain(context: Out<'_, Handle>, device: c_int) -> Code {
    call(Function::cuDevicePrimaryCtxRetain, Needs::Init, |state, _| {
        let (index, _) = state.device(device)?;
        let context = context.ok_or(code::INVALID_VALUE)?;
        let known = state.contexts.primary(index).map(|(handle, _)| handle);
        let handle = known.unwrap_or_else(|| state.new_context(index, true));
        state.revive(handle);
        state.contexts.alive(handle)?.retained += 1;
        put(Some(context), handle)
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuDevicePrimaryCtxRelease_v2(device: c_int) -> Code {
    call(Function::cuDevicePrimaryCtxRelease_v2, Needs::Init, |state, _| {
        let (index, _) = state.device(device)?;
        let (handle, context) = state
            .contexts
            .primary(index)
            .filter(|(_, own)| own.retained > 0)
            .ok_or(code::INVALID_CONTEXT)?;
        context.retained -= 1;
        if context.retained == 0 {
            state.ends_under_a_kernel(handle);
            state.end(handle);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuCtxCreate_v2(
    context: Out<'_, Handle>,
    flags: u32,
    device: c_int,
) -> Code {
    call(Function::cuCtxCreate_v2, Needs::Init, |state, _| {
        let (index, _) = state.device(device)?;
        if flags & !FLAGS != 0 || ![0, 1, 2, 4].contains(&(flags & SCHED_MASK)) {
            return Err(code::INVALID_VALUE);
        }
        let context = context.ok_or(code::INVALID_VALUE)?;
        let handle = state.new_context(index, false);
        with_stack(state.epoch, |stack| stack.push(handle));
        put(Some(context), handle)
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuCtxDestroy_v2(context: Handle) -> Code {
    call(Function::cuCtxDestroy_v2, Needs::Init, |state, _| {
        state.contexts.get(context).filter(|own| !own.primary).ok_or(code::INVALID_CONTEXT)?;
        with_stack(state.epoch, |stack| stack.pop_if(|top| *top == context));
        state.ends_under_a_kernel(context);
        state.end(context);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuCtxGetCurrent(context: Out<'_, Handle>) -> Code {
    call(Function::cuCtxGetCurrent, Needs::Init, |state, _| {
        put(context, current(state.epoch).unwrap_or(0))
    })
}

/// A context that can become current.
fn usable(state: &mut State, context: Handle) -> Answer {
    state.contexts.get(context).ok_or(code::INVALID_CONTEXT)?;
    state.contexts.alive(context).map(|_| ())
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuCtxSetCurrent(context: Handle) -> Code {
    call(Function::cuCtxSetCurrent, Needs::Init, |state, _| {
        if context != 0 {
            usable(state, context)?;
        }
        with_stack(state.epoch, |stack| {
            stack.pop();
            stack.extend((context != 0).then_some(context));
        });
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuCtxPushCurrent_v2(context: Handle) -> Code {
    call(Function::cuCtxPushCurrent_v2, Needs::Init, |state, _| {
        usable(state, context)?;
        with_stack(state.epoch, |stack| stack.push(context));
        Ok(())
    })
}

/// `pctx` may be NULL.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuCtxPopCurrent_v2(context: Out<'_, Handle>) -> Code {
    call(Function::cuCtxPopCurrent_v2, Needs::Init, |state, _| {
        let popped = with_stack(state.epoch, Vec::pop).ok_or(code::INVALID_CONTEXT)?;
        context.map_or(Ok(()), |context| put(Some(context), popped))
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuCtxGetDevice(device: Out<'_, c_int>) -> Code {
    call(Function::cuCtxGetDevice, Needs::Init, |state, _| {
        let current = current(state.epoch).ok_or(code::INVALID_CONTEXT)?;
        let index = state.contexts.alive(current)?.device;
        put(device, c_int::try_from(index).unwrap_or(0))
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuCtxSynchronize() -> Code {
    let begin = |state: &mut State, current| Ok((current, state.next_seq));
    wait(Function::cuCtxSynchronize, begin, |state, (context, until)| {
        let alive = state.contexts.alive(*context)?;
        if let Some(code) = alive.error {
            return Err(code);
        }
        let streams: Vec<_> = state
            .streams
            .iter()
            .filter(|(_, own)| own.context == *context)
            .map(|(handle, _)| *handle)
            .collect();
        let mut done = true;
        for stream in streams {
            done &= state.advance(stream, *until, false)?;
        }
        Ok(done)
    })
}
