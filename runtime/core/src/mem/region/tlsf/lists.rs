//! The lists of gaps by size: a gap goes into its list and out of it, and the first list that fits
//! is found by two bitmaps.

use super::Tlsf;
use super::class::Class;
use super::node::{NIL, Node};

impl<N: AsRef<[Node]> + AsMut<[Node]> + ?Sized> Tlsf<N> {
    /// The first list at or above `class` with a gap in it; [`Class::NONE`], whose list is always
    /// empty, if there is none.
    pub(super) fn first_from(&self, class: Class) -> Class {
        let here = self.sl_flags(class.fl()) & (u32::MAX << class.sl());
        if here != 0 {
            return Class::new(class.fl(), here.trailing_zeros());
        }
        let above = self.fl_bitmap & (u32::MAX << class.fl() << 1);
        if above == 0 {
            return Class::NONE;
        }
        let fl = above.trailing_zeros();
        Class::new(fl, self.sl_flags(fl).trailing_zeros())
    }

    /// Changes the size of the gap before `owner`, and its list if that is another one.
    #[inline(always)] // A tenth less time for an allocation and its free.
    pub(super) fn set_gap(&mut self, owner: u16, gap: u32) {
        let (from, to) = (Class::of(self.node(owner).gap), Class::of(gap));
        self.node_mut(owner).gap = gap;
        if from == to {
            return;
        }
        if from != Class::NONE {
            self.remove(owner, from);
        }
        if to != Class::NONE {
            self.insert(owner, to);
        }
    }

    /// Puts a gap at the head of its list.
    pub(super) fn insert(&mut self, owner: u16, class: Class) {
        let head = self.head(class);
        let node = self.node_mut(owner);
        node.prev_free = NIL;
        node.next_free = head;
        if head != NIL {
            self.node_mut(head).prev_free = owner;
        }
        self.set_head(class, owner);
        self.fl_bitmap |= 1 << class.fl();
        if let Some(flags) = self.sl_bitmap.get_mut(class.fl() as usize) {
            *flags |= 1 << class.sl();
        }
    }

    /// Takes a gap out of its list.
    pub(super) fn remove(&mut self, owner: u16, class: Class) {
        let Node { prev_free, next_free, .. } = self.node(owner);
        if next_free != NIL {
            self.node_mut(next_free).prev_free = prev_free;
        }
        if prev_free != NIL {
            self.node_mut(prev_free).next_free = next_free;
            return;
        }
        self.set_head(class, next_free);
        if next_free == NIL
            && let Some(flags) = self.sl_bitmap.get_mut(class.fl() as usize)
        {
            *flags &= !(1 << class.sl());
            if *flags == 0 {
                self.fl_bitmap &= !(1 << class.fl());
            }
        }
    }

    /// The first owner of a list; [`NIL`] if it is empty.
    pub(super) fn head(&self, class: Class) -> u16 {
        self.heads.get(class.0 as usize).copied().unwrap_or(NIL)
    }

    fn set_head(&mut self, class: Class, owner: u16) {
        if let Some(head) = self.heads.get_mut(class.0 as usize) {
            *head = owner;
        }
    }

    /// The second level's flags; none above the largest size.
    fn sl_flags(&self, fl: u32) -> u32 {
        self.sl_bitmap.get(fl as usize).copied().unwrap_or(0)
    }
}
