/** The path of a target as the router reads it: without a query, doubled slashes and a slash at its end. */
export function pathOf(target: string): string {
  const [path = ''] = target.split('?', 1);
  const single = path.replaceAll(/\/{2,}/g, '/');
  return single.length > 1 && single.endsWith('/') ? single.slice(0, -1) : single;
}
