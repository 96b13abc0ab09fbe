//! The listed tools, and the meaning of calls.

use sallyport_contract::{CallFailure, FailureKind};
use sallyport_model::ModelCallRequest;

use super::*;
use crate::toolset::UnwrappedCall;

fn call(name: &str, arguments: &str) -> ModelCallRequest {
    ModelCallRequest { id: "1".into(), name: name.into(), arguments: arguments.into() }
}

fn wants(name: &str, arguments: &str) -> UnwrappedCall {
    UnwrappedCall::Tool { name: name.into(), arguments: arguments.into() }
}

fn searches(query: &str, limit: usize) -> UnwrappedCall {
    UnwrappedCall::Search { query: query.into(), limit }
}

fn broken(why: &str) -> UnwrappedCall {
    UnwrappedCall::Broken(CallFailure::new(FailureKind::InvalidArguments, why))
}

#[test]
fn few_tools_are_all_told_and_many_are_searched() {
    let tools = [tool("b.two", "Second."), tool("a.one", "First.")];
    let names = |tokens_max| {
        let toolset = Toolset::new(&tools, tokens_max).unwrap();
        toolset.definitions().iter().map(|tool| tool.name.clone()).collect::<Vec<_>>()
    };
    // 70 and 69 bytes, of which 57 are the schema: 18 tokens each.
    for tokens_max in [None, Some(36), Some(u64::MAX)] {
        assert_eq!(names(tokens_max), ["b__two", "a__one"], "{tokens_max:?}");
    }
    for tokens_max in [Some(0), Some(35)] {
        assert_eq!(names(tokens_max), ["search_tools", "use_tool"], "{tokens_max:?}");
    }
    assert!(searched(&[]).definitions().is_empty());
}

#[test]
fn what_is_told_does_not_depend_on_what_was_found() {
    let toolset = searched(&[tool("b.two", "Second."), tool("a.one", "First.")]);
    let before = toolset.definitions().to_vec();
    toolset.search_tools("second", 5);
    assert_eq!(toolset.definitions(), before);
    let described = &before[0].description;
    assert!(described.ends_with("There are 2 tools, of these plugins: a, b."), "{described}");
}

#[test]
fn what_is_called_is_found_out() {
    let toolset = searched(&[tool("clock.get_time", "Tells the time.")]);
    let rows = [
        ("clock__get_time", "{oops", wants("clock__get_time", "{oops")),
        ("clock.get_time", "", wants("clock.get_time", "")),
        ("search_tools", r#"{"query":" time "}"#, searches("time", 5)),
        ("search_tools", r#"{"query":"time","limit":99}"#, searches("time", 20)),
        ("search_tools", r#"{"query":"time","limit":null}"#, searches("time", 5)),
        ("use_tool", r#"{"name":"a__b","arguments":{"x":[1.0]}}"#, wants("a__b", r#"{"x":[1.0]}"#)),
        ("use_tool", r#"{"name":"a.b","arguments":"{\"x\": 1,}"}"#, wants("a.b", r#"{"x": 1,}"#)),
        ("use_tool", r#"{"name":"a.b","arguments":[1]}"#, wants("a.b", "[1]")),
        ("use_tool", r#"{"name":"a.b","arguments":" "}"#, wants("a.b", "{}")),
        ("use_tool", r#"{"name":"a.b","arguments":null}"#, wants("a.b", "{}")),
        ("use_tool", r#"{"name":"a.b"}"#, wants("a.b", "{}")),
    ];
    for (name, arguments, wanted) in rows {
        assert_eq!(toolset.parse_call(&call(name, arguments)), wanted, "{name} {arguments}");
    }
}

#[test]
fn what_cannot_be_made_out_is_told() {
    let toolset = searched(&[tool("clock.get_time", "Tells the time.")]);
    let rows = [
        ("search_tools", "", "search_tools: `query` has to be there, as a text"),
        ("search_tools", r#"{"query":" "}"#, "search_tools: `query` has to be there, as a text"),
        ("search_tools", r#"["time"]"#, "search_tools: the arguments have to be an object"),
        (
            "search_tools",
            r#"{"query":"x","limit":0}"#,
            "search_tools: `limit` has to be a number from 1",
        ),
        (
            "search_tools",
            r#"{"query":"x","plugin":"y"}"#,
            "search_tools: too many arguments; it takes `query` and `limit`",
        ),
        ("use_tool", "{}", "use_tool: `name` has to be there, as a text"),
        ("use_tool", r#"{"name":"use_tool"}"#, "use_tool: use_tool is called directly"),
        ("use_tool", r#"{"name":"search_tools"}"#, "use_tool: search_tools is called directly"),
        (
            "use_tool",
            r#"{"name":"a.b","x":1}"#,
            "use_tool: too many arguments; put the tool's own arguments into `arguments`",
        ),
    ];
    for (name, arguments, why) in rows {
        assert_eq!(toolset.parse_call(&call(name, arguments)), broken(why), "{name} {arguments}");
    }
    for arguments in ["{", r#"{"name":"a","name":"b"}"#, &"[".repeat(9_999)] {
        let wanted = toolset.parse_call(&call("use_tool", arguments));
        assert!(matches!(wanted, UnwrappedCall::Broken(_)), "{wanted:?}");
    }
}

#[test]
fn without_a_search_its_names_are_names_like_others() {
    let toolset = Toolset::new(&[tool("clock.get_time", "")], None).unwrap();
    let arguments = r#"{"query":"x"}"#;
    assert_eq!(
        toolset.parse_call(&call("search_tools", arguments)),
        wants("search_tools", arguments)
    );
}

#[test]
fn no_tool_can_take_the_names_of_the_search() {
    let long = format!("{}.tools", "search_".repeat(9));
    for id in ["search.tools", "use.tool", "search_.tools", "search.search_tools", &long] {
        let toolset = searched(&[tool(id, "")]);
        for name in ["search_tools", "use_tool"] {
            assert_eq!(toolset.name_table().resolve(name), None, "{id}");
        }
    }
}

#[test]
fn tools_that_look_alike_are_refused() {
    for tokens_max in [None, Some(0)] {
        let same = [tool("a.b:c", ""), tool("a.b.c", "")];
        assert_eq!(Toolset::new(&same, tokens_max).unwrap_err().name, "a__b_c");
    }
}

#[test]
fn the_tool_for_results_joins_a_list_or_a_search_once() {
    let tools = [tool("clock.get_time", "")];
    let arguments = r#"{"result":1}"#;
    let rows = [
        (Toolset::new(&tools, None).unwrap(), vec!["clock__get_time", "result"]),
        (searched(&tools), vec!["search_tools", "use_tool", "result"]),
    ];
    for (mut toolset, wanted) in rows {
        assert_eq!(toolset.parse_call(&call("result", arguments)), wants("result", arguments));
        assert_eq!((toolset.offer_results(), toolset.offer_results()), (true, false));
        let names: Vec<&str> =
            toolset.definitions().iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, wanted);
        let query = toolset.parse_call(&call("result", arguments));
        assert!(matches!(query, UnwrappedCall::ReadResult(query) if query.number == 1));
    }
    let used = searched(&tools).parse_call(&call("use_tool", r#"{"name":"result"}"#));
    assert_eq!(used, broken("use_tool: result is called directly"));
}
