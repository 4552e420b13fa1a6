use super::*;
use crate::children;
use std::{fs, process::Command};

/// Everything declared here, as assertions for a C compiler.
fn assertions() -> String {
    let mut text = String::from(
        "#include <stddef.h>\n#include <rdma/fabric.h>\n#include <rdma/fi_domain.h>\n#include <rdma/fi_endpoint.h>\n\
         #include <rdma/fi_cm.h>\n#include <rdma/fi_errno.h>\n",
    );
    for structure in [
        Info::assertions(),
        TxAttr::assertions(),
        RxAttr::assertions(),
        EpAttr::assertions(),
        DomainAttr::assertions(),
        FabricAttr::assertions(),
        Ops::assertions(),
        Fid::assertions(),
        OpsFabric::assertions(),
        Fabric::assertions(),
        OpsDomain::assertions(),
        OpsMr::assertions(),
        Domain::assertions(),
        Mr::assertions(),
        AvAttr::assertions(),
        OpsAv::assertions(),
        Av::assertions(),
        CqAttr::assertions(),
        CqMsgEntry::assertions(),
        CqErrEntry::assertions(),
        OpsCq::assertions(),
        Cq::assertions(),
        OpsEp::assertions(),
        OpsCm::assertions(),
        OpsMsg::assertions(),
        Ep::assertions(),
    ] {
        text += &structure;
    }
    let numbers = [
        ("FI_MSG", MSG),
        ("FI_RECV", RECV),
        ("FI_SEND", SEND),
        ("FI_NUMERICHOST", NUMERICHOST),
        ("FI_SOURCE", SOURCE),
        ("FI_CONTEXT", CONTEXT),
        ("FI_CONTEXT2", CONTEXT2),
        ("FI_ORDER_SAS", ORDER_SAS),
        ("FI_ADDR_UNSPEC", ADDR_UNSPEC),
        ("FI_SOCKADDR", SOCKADDR.into()),
        ("FI_SOCKADDR_IN", SOCKADDR_IN.into()),
        ("FI_SOCKADDR_IN6", SOCKADDR_IN6.into()),
        ("FI_MR_LOCAL", MR_LOCAL as u64),
        ("FI_MR_VIRT_ADDR", MR_VIRT_ADDR as u64),
        ("FI_MR_ALLOCATED", MR_ALLOCATED as u64),
        ("FI_MR_PROV_KEY", MR_PROV_KEY as u64),
        ("FI_MR_ENDPOINT", MR_ENDPOINT as u64),
        ("FI_THREAD_DOMAIN", THREAD_DOMAIN as u64),
        ("FI_EP_RDM", EP_RDM as u64),
        ("FI_AV_TABLE", AV_TABLE as u64),
        ("FI_RM_ENABLED", RM_ENABLED as u64),
        ("FI_CQ_FORMAT_MSG", CQ_FORMAT_MSG as u64),
        ("FI_WAIT_NONE", WAIT_NONE as u64),
        ("FI_WAIT_FD", WAIT_FD as u64),
        ("FI_GETWAIT", GETWAIT as u64),
        ("FI_ENABLE", ENABLE as u64),
        ("FI_EAVAIL", EAVAIL as u64),
        ("sizeof(struct fi_context2)", size_of::<[u64; 8]>() as u64),
    ];
    for (name, number) in numbers {
        text += &format!("_Static_assert({name} == {number}ull, \"{name}\");\n");
    }
    text
}

/// Whether a C compiler agrees, and what it says if not.
fn compile(text: &str, name: &str) -> (bool, String) {
    let file = std::env::temp_dir().join(format!("linkbraid-abi-{name}-{}.c", std::process::id()));
    fs::write(&file, text).expect("there is room");
    let done = children::run(Command::new("cc").args(["-std=c11", "-fsyntax-only"]).arg(&file));
    let _ = fs::remove_file(&file);
    (done.status.success(), String::from_utf8_lossy(&done.stderr).into_owned())
}

#[test]
fn the_layouts_are_those_of_the_headers() {
    let text = assertions();
    let (agrees, says) = compile(&text, "good");
    assert!(agrees, "{says}\nwithout headers: scripts/deps.sh test");
    let wrong = text.replacen(
        "offsetof(struct fi_info, src_addr) == 48",
        "offsetof(struct fi_info, src_addr) == 49",
        1,
    );
    assert_ne!(wrong, text);
    assert!(!compile(&wrong, "wrong").0, "the compiler checks nothing");
}
