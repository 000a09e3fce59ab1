/** Whether a path is the name of a named pipe of Windows. Such a pipe is no file. */
export function isPipe(path: string): boolean {
  return /^\\\\[.?]\\pipe\\./i.test(path);
}

/** How long a socket's path can be: in bytes on Linux and macOS, in characters for a named pipe of Windows. */
export function maxSocketLength(platform: NodeJS.Platform): number {
  if (platform === 'win32') return 256;
  return platform === 'darwin' ? 103 : 107;
}
