use crate::{Access, Refusal, Views};
use core::sync::atomic::AtomicU32;

#[test]
fn readers_are_counted_and_a_writer_is_alone() {
    let views = Views::new();
    assert_eq!((views.open(Access::Read), views.open(Access::Read)), (Ok(()), Ok(())));
    assert_eq!((views.open(Access::Write), views.count()), (Err(Refusal::Viewed { views: 2 }), 2));
    assert_eq!(
        (views.close(), views.close(), views.close()),
        (Ok(false), Ok(false), Err(Refusal::NotViewed))
    );
    assert_eq!(views.open(Access::Write), Ok(()));
    assert_eq!(
        (views.open(Access::Read), views.open(Access::Write)),
        (Err(Refusal::Viewed { views: 1 }), Err(Refusal::Viewed { views: 1 }))
    );
    assert_eq!(
        (views.close(), views.none(), views.close()),
        (Ok(false), Ok(()), Err(Refusal::NotViewed))
    );
}

#[test]
fn the_count_does_not_overflow_into_the_flags() {
    const READERS: u32 = (1 << 30) - 1;
    let views = Views(AtomicU32::new(READERS - 1));
    assert_eq!(
        (views.open(Access::Read), views.open(Access::Read)),
        (Ok(()), Err(Refusal::Viewed { views: READERS }))
    );
}

#[test]
fn a_dropped_buffer_is_freed_once() {
    let views = Views::new();
    assert!(views.drop_buffer(), "no view is there to do it");
    let views = Views::new();
    assert_eq!(
        (views.open(Access::Read), views.open(Access::Read), views.drop_buffer()),
        (Ok(()), Ok(()), false)
    );
    assert_eq!((views.close(), views.close()), (Ok(false), Ok(true)));
}
