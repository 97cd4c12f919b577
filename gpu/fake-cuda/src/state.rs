//! The library's one state, and what every call does first: count, fail where the configuration
//! asks for it, and find its context.

use crate::context::{self, Context, Contexts};
use crate::memory::Memory;
use crate::ptx::Entry;
use crate::stream::{Event, Stream, Work};
use crate::{Code, Config, Counters, Function, code};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

/// The answer of a call: nothing, or the code of an error.
pub(crate) type Answer<T = ()> = Result<T, Code>;

/// A context, stream, event, module or function as the caller has it: a number that was never
/// another's, and that is no pointer.
pub(crate) type Handle = usize;

/// The needs of a call before it does anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    Nothing,
    /// `cuInit`.
    Init,
    /// A current context that is alive and has no error.
    Context,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) config: Config,
    /// Which configuration it is: threads forget the contexts of another.
    pub(crate) epoch: u64,
    pub(crate) initialised: bool,
    pub(crate) counters: Counters,
    pub(crate) contexts: Contexts,
    pub(crate) streams: BTreeMap<Handle, Stream>,
    pub(crate) events: BTreeMap<Handle, Event>,
    pub(crate) modules: BTreeMap<Handle, Module>,
    pub(crate) functions: BTreeMap<Handle, Loaded>,
    pub(crate) memory: Memory,
    next_handle: Handle,
    pub(crate) next_seq: u64,
    /// The configuration makes the call fail: no misuse.
    injected: bool,
}

#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) context: Handle,
    pub(crate) entries: Vec<Arc<Entry>>,
}

/// A module's kernel, as a program has it.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) context: Handle,
    pub(crate) module: Handle,
    pub(crate) entry: Arc<Entry>,
}

static STATE: LazyLock<Mutex<State>> = LazyLock::new(|| Mutex::new(State::new(1)));

pub(crate) fn lock() -> MutexGuard<'static, State> {
    // A call that panicked would have ended the process.
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One call of the driver. `body` gets the state and, where it needs one, the current context; 0
/// otherwise.
pub(crate) fn call(
    function: Function,
    needs: Needs,
    body: impl FnOnce(&mut State, Handle) -> Answer,
) -> Code {
    let mut state = lock();
    let answer = state.enter(function, needs).and_then(|context| body(&mut state, context));
    state.leave(function, answer)
}

impl State {
    fn new(epoch: u64) -> Self {
        Self {
            config: Config::default(),
            epoch,
            initialised: false,
            counters: Counters::new(),
            contexts: Contexts::default(),
            streams: BTreeMap::new(),
            events: BTreeMap::new(),
            modules: BTreeMap::new(),
            functions: BTreeMap::new(),
            memory: Memory::new(),
            // Below what Linux lets a program map, and above small numbers and errors.
            next_handle: 0x1000,
            next_seq: 0,
            injected: false,
        }
    }

    pub(crate) fn configure(&mut self, config: &Config) {
        let (next_handle, device_next) = (self.next_handle, self.memory.device_next);
        let old = std::mem::replace(self, Self::new(self.epoch + 1));
        old.memory.forget();
        self.config = *config;
        // A handle of the last configuration stays a number that nothing has.
        self.next_handle = next_handle;
        self.memory.device_next = device_next;
    }

    /// Everything before a call's own work.
    pub(crate) fn enter(&mut self, function: Function, needs: Needs) -> Answer<Handle> {
        let calls = self.counters.calls.get_mut(function as usize).map_or(0, |calls| {
            *calls += 1;
            *calls
        });
        let fails = |failure: &&crate::Failure| {
            failure.function == function && [0, calls].contains(&u64::from(failure.nth))
        };
        if let Some(failure) =
            self.config.failures.iter().filter(|failure| failure.code != code::SUCCESS).find(fails)
        {
            self.injected = true;
            return Err(failure.code);
        }
        if needs != Needs::Nothing && !self.initialised {
            return Err(code::NOT_INITIALIZED);
        }
        if needs != Needs::Context {
            return Ok(0);
        }
        let current = context::current(self.epoch).ok_or(code::INVALID_CONTEXT)?;
        self.report(current)?;
        Ok(current)
    }

    pub(crate) fn leave(&mut self, function: Function, answer: Answer) -> Code {
        let misuse = [
            code::INVALID_VALUE,
            code::NOT_INITIALIZED,
            code::INVALID_DEVICE,
            code::INVALID_CONTEXT,
            code::INVALID_HANDLE,
            code::NOT_FOUND,
            code::CONTEXT_IS_DESTROYED,
            code::HOST_MEMORY_ALREADY_REGISTERED,
            code::HOST_MEMORY_NOT_REGISTERED,
        ];
        let code = answer.err().unwrap_or(code::SUCCESS);
        let injected = std::mem::take(&mut self.injected);
        if misuse.contains(&code)
            && !injected
            && let Some(refused) = self.counters.refused.get_mut(function as usize)
        {
            *refused += 1;
        }
        code
    }

    pub(crate) const fn new_handle(&mut self) -> Handle {
        self.next_handle += 0x10;
        self.next_handle
    }

    /// The context, if it is alive and has no error; a late one is a call nearer.
    pub(crate) fn report(&mut self, handle: Handle) -> Answer {
        let context = self.contexts.alive(handle)?;
        if let Some((code, calls)) = context.late
            && calls > 0
        {
            context.late = Some((code, calls - 1));
            if calls == 1 {
                self.fail(handle, code);
                return Err(code);
            }
        }
        self.contexts.alive(handle)?.error.map_or(Ok(()), Err)
    }

    /// The context is lost: its kernels end, and every call in it answers `code`.
    pub(crate) fn fail(&mut self, handle: Handle, code: Code) {
        if let Ok(context) = self.contexts.alive(handle) {
            context.error.get_or_insert(code);
        }
        self.streams
            .values_mut()
            .filter(|stream| stream.context == handle)
            .for_each(|stream| stream.queue.clear());
    }

    /// Whether a kernel or a copy waits in one of the context's streams. It is counted: the
    /// context's end frees their memory.
    pub(crate) fn ends_under_a_kernel(&mut self, handle: Handle) {
        let own = self.streams.values().filter(|stream| stream.context == handle);
        let used = own.flat_map(|stream| &stream.queue).any(|op| !matches!(op.work, Work::Record));
        self.counters.freed_under_a_kernel += u64::from(used);
    }

    /// The context ends, with all that is in it.
    pub(crate) fn end(&mut self, handle: Handle) {
        let mut ended = 0;
        let null = self.contexts.get(handle).map(|context| context.null);
        self.streams.retain(|stream, own| {
            ended += u64::from(own.context == handle && Some(*stream) != null && !own.destroyed);
            own.context != handle
        });
        self.events.retain(|_, event| {
            ended += u64::from(event.context == handle);
            event.context != handle
        });
        self.modules.retain(|_, module| {
            ended += u64::from(module.context == handle);
            module.context != handle
        });
        self.functions.retain(|_, function| function.context != handle);
        let (memory, overruns) = self.memory.end(handle);
        self.counters.ended_with_their_context += ended + memory;
        self.counters.overruns += overruns;
        self.contexts.end(handle);
    }

    /// A context of `device`, with its NULL stream.
    pub(crate) fn new_context(&mut self, device: usize, primary: bool) -> Handle {
        let (handle, null) = (self.new_handle(), self.new_handle());
        self.streams.insert(null, Stream::new(handle));
        self.contexts.insert(handle, Context::new(device, primary, null));
        handle
    }

    /// A primary context that ended begins anew, with the same handle.
    pub(crate) fn revive(&mut self, handle: Handle) {
        let null = self.new_handle();
        if self.contexts.revive(handle, null) {
            self.streams.insert(null, Stream::new(handle));
        }
    }

    pub(crate) fn device(&self, ordinal: i32) -> Answer<(usize, crate::Device)> {
        let index = usize::try_from(ordinal).map_err(|_| code::INVALID_DEVICE)?;
        let there = index < self.config.device_count as usize;
        self.config
            .devices
            .get(index)
            .filter(|_| there)
            .map(|device| (index, *device))
            .ok_or(code::INVALID_DEVICE)
    }

    /// The device of a live context.
    pub(crate) fn device_of(&self, context: Handle) -> Answer<crate::Device> {
        let index = self.contexts.get(context).ok_or(code::INVALID_CONTEXT)?.device;
        self.config.devices.get(index).copied().ok_or(code::INVALID_DEVICE)
    }

    pub(crate) fn counted(&self) -> Counters {
        let mut counters = self.counters;
        (counters.host_allocs, counters.registrations) = self.memory.live();
        let count = |len: usize| len as u64;
        counters.device_allocs = count(self.memory.device.len());
        let nulls: Vec<_> = self.contexts.nulls().collect();
        counters.streams = count(
            self.streams
                .iter()
                .filter(|(handle, own)| !own.destroyed && !nulls.contains(handle))
                .count(),
        );
        counters.events = count(self.events.len());
        counters.modules = count(self.modules.len());
        (counters.created_contexts, counters.retained_contexts) = self.contexts.live();
        counters.queued = count(self.streams.values().map(|stream| stream.queue.len()).sum());
        counters
    }
}
