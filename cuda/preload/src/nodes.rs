// SPDX-License-Identifier: MIT OR Apache-2.0
//! A graph's nodes.

use gpureplay_cuda_launch::abi::{Driver, EdgeData, Handle, Status};

use crate::order;

/// Two calls: length, then items.
pub(crate) fn list<T: Clone>(
    empty: T,
    mut get: impl FnMut(*mut T, *mut usize) -> Status,
) -> Result<Vec<T>, Status> {
    let mut count = 0;
    get(std::ptr::null_mut(), &raw mut count).check()?;
    let mut items = vec![empty; count];
    if count > 0 {
        get(items.as_mut_ptr(), &raw mut count).check()?;
        items.truncate(count);
    }
    Ok(items)
}

pub(crate) fn because(call: &'static str) -> impl Fn(Status) -> String {
    move |status| format!("the nodes of its graph cannot be read: {call}: {status}")
}

/// Each after those that it waits for.
pub(crate) fn nodes(driver: &Driver, graph: Handle) -> Result<Vec<Handle>, String> {
    // SAFETY: the graph is alive; the arrays have as many places as the driver is told.
    let nodes = list(0, |nodes, count| unsafe {
        driver.cuGraphGetNodes(graph, nodes, count)
    })
    .map_err(because("cuGraphGetNodes"))?;
    let mut count = 0;
    let null = std::ptr::null_mut();
    // SAFETY: as above; without arrays the driver only counts.
    unsafe { driver.cuGraphGetEdges_v2(graph, null, null, std::ptr::null_mut(), &raw mut count) }
        .check()
        .map_err(because("cuGraphGetEdges"))?;
    let (mut from, mut to) = (vec![0; count], vec![0; count]);
    let mut data: Vec<EdgeData> = vec![[0; 8]; count];
    if count > 0 {
        // SAFETY: as above.
        unsafe {
            driver.cuGraphGetEdges_v2(
                graph,
                from.as_mut_ptr(),
                to.as_mut_ptr(),
                data.as_mut_ptr(),
                &raw mut count,
            )
        }
        .check()
        .map_err(because("cuGraphGetEdges"))?;
    }
    let edges: Vec<(Handle, Handle)> = from.into_iter().zip(to).take(count).collect();
    order::topological(&nodes, &edges).ok_or_else(|| "its graph has a cycle".to_owned())
}
