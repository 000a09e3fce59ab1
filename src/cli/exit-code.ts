/** What a command's end says to the script around it (outside contract, command line). */
export const exitCode = {
  done: 0,
  failed: 1,
  usage: 2,
  unreachable: 69,
  configuration: 78,
} as const;
