//! The results of the runs: rows, one table for all boards, and the closing line.

mod row;
mod summary;
mod table;

pub(crate) use row::{Kind, Row, Status};
pub(crate) use summary::Summary;
