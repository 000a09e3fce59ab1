/*
 * The fence: after an answer was lost, the request itself may still be on its way (in a proxy, in a slow
 * server) and be applied late. Until the fence has passed, nothing that it could overtake or be overtaken by
 * is sent, and no read of the upstream can say what became of it. (src/sync/README.md, After a lost response)
 */

/** The default of `sync.fence`, in ms. */
export const defaultFenceMs = 60_000;

/** Until when a request whose answer was lost at `now` may still be on its way; both are `Clock.steady` ms. */
export function fenceAfter(now: number, fenceMs: number): number {
  return now + fenceMs;
}
