const risky =
  /^(?:-r|--require|--import|--loader|--experimental-loader|--heap-prof|--cpu-prof|--prof|--heapsnapshot-near-heap-limit|--tls-keylog|--trace-tls|--trace-event-categories|--report-on-fatalerror|--report-uncaught-exception)$/;

/** What in the environment lets Node show or write what the process knows, and cannot be closed (see cli/main.ts). */
export function openBackDoors(): readonly string[] {
  const options = (process.env['NODE_OPTIONS'] ?? '').split(/\s+/).map((option) => option.replace(/=.*/, ''));
  const variables = ['NODE_DEBUG', 'NODE_DEBUG_NATIVE', 'NODE_V8_COVERAGE'];
  return [
    ...options.filter((option) => risky.test(option)).map((option) => `NODE_OPTIONS ${option}`),
    ...variables.filter((name) => (process.env[name] ?? '') !== ''),
  ];
}
