use contigo::drivers::ap_ctrl::describe;

pub fn run(bytes: &[u8]) {
    super::map(describe::json::map(bytes));
}
