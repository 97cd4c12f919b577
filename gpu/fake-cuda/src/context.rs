//! Contexts: each device's primary one, created ones, and each thread's stack of current ones.

use crate::state::{Answer, Handle};
use crate::{Code, code};
use std::cell::RefCell;
use std::collections::BTreeMap;

#[derive(Debug)]
pub(crate) struct Context {
    /// The index of its device.
    pub(crate) device: usize,
    pub(crate) primary: bool,
    alive: bool,
    /// How often a primary context is retained.
    pub(crate) retained: u64,
    /// Its NULL stream.
    pub(crate) null: Handle,
    /// The answer of every call in it, since a kernel failed.
    pub(crate) error: Option<Code>,
    /// An error that no call has reported yet, and the calls until one does; 0 for never.
    pub(crate) late: Option<(Code, u32)>,
}

impl Context {
    pub(crate) const fn new(device: usize, primary: bool, null: Handle) -> Self {
        Self { device, primary, alive: true, retained: 0, null, error: None, late: None }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Contexts(BTreeMap<Handle, Context>);

impl Contexts {
    pub(crate) fn insert(&mut self, handle: Handle, context: Context) {
        self.0.insert(handle, context);
    }

    /// A context that was made, alive or not.
    pub(crate) fn get(&self, handle: Handle) -> Option<&Context> {
        self.0.get(&handle)
    }

    /// A context that is current somewhere: CONTEXT_IS_DESTROYED when it ended since.
    pub(crate) fn alive(&mut self, handle: Handle) -> Answer<&mut Context> {
        self.0.get_mut(&handle).filter(|context| context.alive).ok_or(code::CONTEXT_IS_DESTROYED)
    }

    pub(crate) fn primary(&mut self, device: usize) -> Option<(Handle, &mut Context)> {
        let (handle, context) =
            self.0.iter_mut().find(|(_, context)| context.primary && context.device == device)?;
        Some((*handle, context))
    }

    /// A primary context keeps its handle and its count: both are valid again when it is retained.
    pub(crate) fn end(&mut self, handle: Handle) {
        if let Some(context) = self.0.get_mut(&handle) {
            context.alive = false;
            if !context.primary {
                self.0.remove(&handle);
            }
        }
    }

    /// Whether the context had ended and is alive now.
    pub(crate) fn revive(&mut self, handle: Handle, null: Handle) -> bool {
        let Some(context) = self.0.get_mut(&handle).filter(|context| !context.alive) else {
            return false;
        };
        *context = Context {
            retained: context.retained,
            ..Context::new(context.device, context.primary, null)
        };
        true
    }

    pub(crate) fn nulls(&self) -> impl Iterator<Item = Handle> + '_ {
        self.0.values().map(|context| context.null)
    }

    /// Created contexts, and retains of primary ones.
    pub(crate) fn live(&self) -> (u64, u64) {
        let created = self.0.values().filter(|context| !context.primary).count() as u64;
        (created, self.0.values().map(|context| context.retained).sum())
    }
}

thread_local! {
    /// This thread's contexts, the current one last, and the configuration that they are of.
    static STACK: RefCell<(u64, Vec<Handle>)> = const { RefCell::new((0, Vec::new())) };
}

/// Works on this thread's stack, which is empty at first in each configuration.
pub(crate) fn with_stack<T>(epoch: u64, work: impl FnOnce(&mut Vec<Handle>) -> T) -> T {
    STACK.with_borrow_mut(|(of, stack)| {
        if *of != epoch {
            *of = epoch;
            stack.clear();
        }
        work(stack)
    })
}

pub(crate) fn current(epoch: u64) -> Option<Handle> {
    with_stack(epoch, |stack| stack.last().copied())
}
