#![allow(
    unsafe_code,
    reason = "a page that the kernel wipes in a child, and a function that the C library calls \
     there"
)]
//! Which process this is: a child of fork(2) finds out that it is another one.
//!
//! One word says it, in a page that the kernel gives to a child as zeroes (`MADV_WIPEONFORK`),
//! whatever call made the child. Linux before 4.14 has no such pages; there the word is cleared by
//! a function that the C library calls in a child of its own `fork`.

use crate::types::{Error, Result};
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use nix::errno::Errno;
use nix::libc::{MADV_WIPEONFORK, getpid, pthread_atfork};
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// The page, once a thread has asked. The word in it is not 0 in the process that asked first, and
/// 0 in its children.
static WORD: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());
/// The number of that process, for its children.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Is this the process that asked first? A child of it, made by fork(2) after that, is not, and
/// never will be.
///
/// It is for code that keeps regions, engines or registers where a child finds them again, as the C
/// library and the Python package do. Both ask at each call, because values that a child finds
/// belong to its parent. Asking costs two loads. The first call makes a few system calls. Ask once
/// before the fork: until the first call, a child counts as the first process too.
///
/// A child of vfork(2), or of clone(2) with `CLONE_VM`, has the same memory, and counts as the same
/// process.
///
/// # Errors
/// [`Error::Forked`] in a child; it starts another program by exec(3), which has memory of its own.
/// [`Error::Os`] at the first call: there is no memory for a page.
///
/// Source: man 2 madvise, `MADV_WIPEONFORK`; man 3 pthread_atfork.
///
/// ```
/// contigo::linux::same_process()?;
/// # Ok::<(), contigo::Error>(())
/// ```
#[inline]
pub fn same_process() -> Result<()> {
    // Acquire: a thread that finds the page finds the word in it.
    match NonNull::new(WORD.load(Ordering::Acquire)) {
        // SAFETY: the page is never unmapped (`ask`), and an atomic word is all that anybody makes
        // of it.
        Some(word) if unsafe { word.as_ref() }.load(Ordering::Relaxed) != 0 => Ok(()),
        Some(_) => Err(Error::Forked { owner_pid: OWNER.load(Ordering::Relaxed) }),
        None => ask(),
    }
}

/// The first call. Of several threads at once one publishes its page.
#[cold]
fn ask() -> Result<()> {
    // Miri has neither, nor processes.
    if cfg!(miri) {
        return Ok(());
    }
    let os = |call| move |errno: Errno| Error::Os { call, errno: errno as i32 };
    // SAFETY: it takes nothing and always succeeds.
    let pid = unsafe { getpid() }.cast_unsigned();
    let len_bytes = const { core::num::NonZeroUsize::new(size_of::<AtomicU32>()).unwrap() };
    // SAFETY: a new mapping, wherever there is room.
    let page = unsafe {
        mmap_anonymous(
            None,
            len_bytes,
            ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
            MapFlags::MAP_PRIVATE,
        )
    };
    let page = page.map_err(os("mmap(MAP_ANONYMOUS)"))?;
    let word = page.cast::<AtomicU32>();
    // SAFETY: a page, readable and writable, aligned, zeroed, and not published yet.
    unsafe { word.as_ref() }.store(pid, Ordering::Relaxed);
    // SAFETY: the page that was mapped above. An older kernel refuses the advice, and the function
    // below is there for it.
    unsafe { nix::libc::madvise(page.as_ptr(), len_bytes.get(), MADV_WIPEONFORK) };
    // Before the page is published: a child that finds it has been told. A second thread's is one
    // call more in a child. SAFETY: the function is static, and does only what may be done in a
    // child: one store.
    match unsafe { pthread_atfork(None, None, Some(in_a_child)) } {
        0 => {}
        errno => {
            // SAFETY: this page was not published.
            let _ = unsafe { munmap(page, len_bytes.get()) };
            return Err(Error::Os { call: "pthread_atfork", errno });
        }
    }
    OWNER.store(pid, Ordering::Relaxed);
    // Release: the word is there for a thread that finds the page.
    if WORD
        .compare_exchange(ptr::null_mut(), word.as_ptr(), Ordering::Release, Ordering::Relaxed)
        .is_err()
    {
        // SAFETY: this page was not published; another thread's was first.
        let _ = unsafe { munmap(page, len_bytes.get()) };
    }
    same_process()
}

/// Called by the C library in a child that its `fork` made.
unsafe extern "C" fn in_a_child() {
    if let Some(word) = NonNull::new(WORD.load(Ordering::Relaxed)) {
        // SAFETY: as in `same_process`.
        unsafe { word.as_ref() }.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::libc::{
        _exit, MADV_KEEPONFORK, SIGCHLD, SYS_clone, WEXITSTATUS, c_long, fork, madvise, syscall,
        waitpid,
    };
    use std::{assert, assert_eq};

    /// Does a child, which `fork` makes, know that it is one, and whose?
    fn child_knows<T: Into<c_long>>(fork: impl FnOnce() -> T) -> bool {
        // SAFETY: as in `ask`.
        let here = unsafe { getpid() }.cast_unsigned();
        match i32::try_from(fork().into()) {
            Ok(0) => {
                let knows = same_process() == Err(Error::Forked { owner_pid: here });
                // SAFETY: ends the child at once.
                unsafe { _exit(knows.into()) }
            }
            child => {
                let mut status = 0;
                // SAFETY: the pointer is a reference.
                unsafe { waitpid(child.unwrap_or_default(), &raw mut status, 0) };
                WEXITSTATUS(status) == 1
            }
        }
    }

    /// One test, because the second half changes what children get.
    #[test]
    fn child_is_known_by_kernel_or_c_library() {
        assert_eq!(same_process(), Ok(()));
        // QEMU's user mode takes the advice, and keeps it to itself. It answers for the first link,
        // and the kernel for the second.
        let own =
            ["/proc/self/exe", "/proc/thread-self/exe"].map(|link| std::fs::read_link(link).ok());
        // SAFETY: a page of this test's own.
        let new = memmap2::MmapMut::map_anon(1).is_ok_and(
            |mut page| unsafe { madvise(page.as_mut_ptr().cast(), 1, MADV_WIPEONFORK) } == 0,
        );
        assert_eq!(
            // SAFETY: the child makes two loads and ends. By the system call, so that the C library
            // tells it nothing.
            child_knows(|| unsafe { syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) }),
            new && own[0] == own[1]
        );
        // SAFETY: this module's page, whose word stays as it is; then as above.
        assert!(child_knows(|| unsafe {
            madvise(WORD.load(Ordering::Relaxed).cast(), size_of::<AtomicU32>(), MADV_KEEPONFORK);
            fork()
        }));
        assert_eq!(same_process(), Ok(()), "the parent goes on");
    }
}
