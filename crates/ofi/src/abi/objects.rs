//! What is opened with the library, each with the table of what it can.

use super::{Info, Unused};
use std::ffi::{c_char, c_int, c_void};

structure! {
    /// What every object can.
    Ops is "struct fi_ops", 56 bytes {
        size: usize,
        close: unsafe extern "C" fn(*mut Fid) -> c_int,
        bind: unsafe extern "C" fn(*mut Fid, *mut Fid, u64) -> c_int,
        control: unsafe extern "C" fn(*mut Fid, c_int, *mut c_void) -> c_int,
        ops_open: Unused,
        tostr: Unused,
        ops_set: Unused,
    }
}

structure! {
    /// What every object begins with.
    Fid is "struct fid", 24 bytes {
        fclass: usize,
        context: *mut c_void,
        ops: *mut Ops,
    }
}

structure! {
    /// What a fabric can.
    OpsFabric is "struct fi_ops_fabric", 56 bytes {
        size: usize,
        domain: unsafe extern "C" fn(*mut Fabric, *mut Info, *mut *mut Domain, *mut c_void) -> c_int,
        passive_ep: Unused,
        eq_open: Unused,
        wait_open: Unused,
        trywait: unsafe extern "C" fn(*mut Fabric, *mut *mut Fid, c_int) -> c_int,
        domain2: Unused,
    }
}

structure! {
    /// A fabric.
    Fabric is "struct fid_fabric", 40 bytes {
        fid: Fid,
        ops: *mut OpsFabric,
        api_version: u32,
    }
}

structure! {
    /// What a domain can.
    OpsDomain is "struct fi_ops_domain", 96 bytes {
        size: usize,
        av_open: unsafe extern "C" fn(*mut Domain, *mut AvAttr, *mut *mut Av, *mut c_void) -> c_int,
        cq_open: unsafe extern "C" fn(*mut Domain, *mut CqAttr, *mut *mut Cq, *mut c_void) -> c_int,
        endpoint: unsafe extern "C" fn(*mut Domain, *mut Info, *mut *mut Ep, *mut c_void) -> c_int,
        scalable_ep: Unused,
        cntr_open: Unused,
        poll_open: Unused,
        stx_ctx: Unused,
        srx_ctx: Unused,
        query_atomic: Unused,
        query_collective: Unused,
        endpoint2: Unused,
    }
}

/// `fi_mr_reg(3)`.
pub type Register = unsafe extern "C" fn(
    *mut Fid,
    *const c_void,
    usize,
    u64,
    u64,
    u64,
    u64,
    *mut *mut Mr,
    *mut c_void,
) -> c_int;

structure! {
    /// How a domain registers memory.
    OpsMr is "struct fi_ops_mr", 32 bytes {
        size: usize,
        reg: Register,
        regv: Unused,
        regattr: Unused,
    }
}

structure! {
    /// A domain.
    Domain is "struct fid_domain", 40 bytes {
        fid: Fid,
        ops: *mut OpsDomain,
        mr: *mut OpsMr,
    }
}

structure! {
    /// Registered memory.
    Mr is "struct fid_mr", 40 bytes {
        fid: Fid,
        mem_desc: *mut c_void,
        key: u64,
    }
}

structure! {
    /// How an address vector is opened.
    AvAttr is "struct fi_av_attr", 48 bytes {
        r#type: c_int,
        rx_ctx_bits: c_int,
        count: usize,
        ep_per_node: usize,
        name: *const c_char,
        map_addr: *mut c_void,
        flags: u64,
    }
}

/// `fi_av_insert(3)`.
pub type Insert = unsafe extern "C" fn(*mut Av, *const c_void, usize, *mut u64, u64, *mut c_void) -> c_int;

structure! {
    /// What an address vector can.
    OpsAv is "struct fi_ops_av", 64 bytes {
        size: usize,
        insert: Insert,
        insertsvc: Unused,
        insertsym: Unused,
        remove: unsafe extern "C" fn(*mut Av, *mut u64, usize, u64) -> c_int,
        lookup: Unused,
        straddr: Unused,
        av_set: Unused,
    }
}

structure! {
    /// An address vector: who can be sent to.
    Av is "struct fid_av", 32 bytes {
        fid: Fid,
        ops: *mut OpsAv,
    }
}

structure! {
    /// How a completion queue is opened.
    CqAttr is "struct fi_cq_attr", 40 bytes {
        size: usize,
        flags: u64,
        format: c_int,
        wait_obj: c_int,
        signaling_vector: c_int,
        wait_cond: c_int,
        wait_set: Unused,
    }
}

structure! {
    /// A completion: something was sent, or was received.
    CqMsgEntry is "struct fi_cq_msg_entry", 24 bytes {
        op_context: *mut c_void,
        flags: u64,
        len: usize,
    }
}

structure! {
    /// The completion of something that failed.
    CqErrEntry is "struct fi_cq_err_entry", 80 bytes {
        op_context: *mut c_void,
        flags: u64,
        len: usize,
        buf: *mut c_void,
        data: u64,
        tag: u64,
        olen: usize,
        err: c_int,
        prov_errno: c_int,
        err_data: *mut c_void,
        err_data_size: usize,
    }
}

structure! {
    /// What a completion queue can.
    OpsCq is "struct fi_ops_cq", 64 bytes {
        size: usize,
        read: unsafe extern "C" fn(*mut Cq, *mut c_void, usize) -> isize,
        readfrom: Unused,
        readerr: unsafe extern "C" fn(*mut Cq, *mut CqErrEntry, u64) -> isize,
        sread: Unused,
        sreadfrom: Unused,
        signal: Unused,
        strerror: Unused,
    }
}

structure! {
    /// A completion queue.
    Cq is "struct fid_cq", 32 bytes {
        fid: Fid,
        ops: *mut OpsCq,
    }
}

structure! {
    /// What an endpoint can beside messages.
    OpsEp is "struct fi_ops_ep", 64 bytes {
        size: usize,
        cancel: unsafe extern "C" fn(*mut Fid, *mut c_void) -> isize,
        getopt: Unused,
        setopt: Unused,
        tx_ctx: Unused,
        rx_ctx: Unused,
        rx_size_left: Unused,
        tx_size_left: Unused,
    }
}

structure! {
    /// How an endpoint is named.
    OpsCm is "struct fi_ops_cm", 80 bytes {
        size: usize,
        setname: Unused,
        getname: unsafe extern "C" fn(*mut Fid, *mut c_void, *mut usize) -> c_int,
        getpeer: Unused,
        connect: Unused,
        listen: Unused,
        accept: Unused,
        reject: Unused,
        shutdown: Unused,
        join: Unused,
    }
}

/// `fi_send(3)`.
pub type Send = unsafe extern "C" fn(*mut Ep, *const c_void, usize, *mut c_void, u64, *mut c_void) -> isize;
/// `fi_recv(3)`.
pub type Recv = unsafe extern "C" fn(*mut Ep, *mut c_void, usize, *mut c_void, u64, *mut c_void) -> isize;

structure! {
    /// How an endpoint sends and receives messages.
    OpsMsg is "struct fi_ops_msg", 80 bytes {
        size: usize,
        recv: Recv,
        recvv: Unused,
        recvmsg: Unused,
        send: Send,
        sendv: Unused,
        sendmsg: Unused,
        inject: Unused,
        senddata: Unused,
        injectdata: Unused,
    }
}

structure! {
    /// An endpoint.
    Ep is "struct fid_ep", 80 bytes {
        fid: Fid,
        ops: *mut OpsEp,
        cm: *mut OpsCm,
        msg: *mut OpsMsg,
        rma: Unused,
        tagged: Unused,
        atomic: Unused,
        collective: Unused,
    }
}
