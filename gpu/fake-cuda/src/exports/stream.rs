//! Streams and events.

use super::{Out, put};
use crate::state::{Handle, Needs, State, call};
use crate::stream::{Event, Stream, Work, step, wait};
use crate::{Code, Function, code};

const STREAM_NON_BLOCKING: u32 = 1;
/// CU_EVENT_BLOCKING_SYNC, DISABLE_TIMING, INTERPROCESS; the last needs the one before.
const EVENT_FLAGS: u32 = 7;
const EVENT_DISABLE_TIMING: u32 = 2;
const EVENT_INTERPROCESS: u32 = 4;

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuStreamCreate(stream: Out<'_, Handle>, flags: u32) -> Code {
    call(Function::cuStreamCreate, Needs::Context, |state, current| {
        let stream =
            stream.filter(|_| flags & !STREAM_NON_BLOCKING == 0).ok_or(code::INVALID_VALUE)?;
        let handle = state.new_handle();
        state.streams.insert(handle, Stream::new(current));
        put(Some(stream), handle)
    })
}

/// What is queued still happens.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuStreamDestroy_v2(stream: Handle) -> Code {
    call(Function::cuStreamDestroy_v2, Needs::Context, |state, current| {
        if stream <= 1 {
            return Err(code::INVALID_HANDLE);
        }
        let stream = state.stream(stream, current)?;
        state.streams.get_mut(&stream).ok_or(code::INVALID_HANDLE)?.destroyed = true;
        state.streams.retain(|_, own| !own.destroyed || !own.queue.is_empty());
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuStreamQuery(stream: Handle) -> Code {
    call(Function::cuStreamQuery, Needs::Context, |state, current| {
        let stream = state.stream(stream, current)?;
        if state.advance(stream, u64::MAX, true)? { Ok(()) } else { Err(code::NOT_READY) }
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuStreamSynchronize(stream: Handle) -> Code {
    let begin =
        |state: &mut State, current| Ok((current, state.stream(stream, current)?, state.next_seq));
    wait(Function::cuStreamSynchronize, begin, step)
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuEventCreate(event: Out<'_, Handle>, flags: u32) -> Code {
    call(Function::cuEventCreate, Needs::Context, |state, current| {
        let known = flags & !EVENT_FLAGS == 0
            && (flags & EVENT_INTERPROCESS == 0 || flags & EVENT_DISABLE_TIMING != 0);
        let event = event.filter(|_| known).ok_or(code::INVALID_VALUE)?;
        let handle = state.new_handle();
        state.events.insert(handle, Event { context: current, recorded: None });
        put(Some(event), handle)
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuEventRecord(event: Handle, stream: Handle) -> Code {
    call(Function::cuEventRecord, Needs::Context, |state, current| {
        let stream = state.stream(stream, current)?;
        state
            .events
            .get(&event)
            .filter(|own| own.context == current)
            .ok_or(code::INVALID_HANDLE)?;
        let seq = state.push(stream, Work::Record)?;
        state.events.get_mut(&event).ok_or(code::INVALID_HANDLE)?.recorded = Some((stream, seq));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuEventQuery(event: Handle) -> Code {
    call(Function::cuEventQuery, Needs::Context, |state, _| {
        let own = state.events.get(&event).ok_or(code::INVALID_HANDLE)?;
        let Some((context, (stream, seq))) = own.recorded.map(|recorded| (own.context, recorded))
        else {
            return Ok(());
        };
        if let Some(code) = state.contexts.alive(context)?.error {
            return Err(code);
        }
        if state.advance(stream, seq, true)? { Ok(()) } else { Err(code::NOT_READY) }
    })
}

/// Also before its record is reached.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuEventDestroy_v2(event: Handle) -> Code {
    call(Function::cuEventDestroy_v2, Needs::Context, |state, _| {
        state.events.remove(&event).map(|_| ()).ok_or(code::INVALID_HANDLE)
    })
}
