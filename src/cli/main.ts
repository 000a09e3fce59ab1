process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // A pipe that its reader closed is no failure; a full disk is.
  process.exit(error.code === 'EPIPE' ? undefined : 1);
});
const { runProgram } = await import('./program.ts');
process.exitCode = await runProgram(process.argv.slice(2));
