import { defineCommand, refuseDaemonOptions } from '../command.ts';
import { exitCode } from '../exit-code.ts';

export const command = defineCommand({
  command: 'demo',
  describe: 'Show the main scenario end to end, in a few seconds',
  builder: {},
  examples: [['latchkey demo', 'on a temporary store and agent']],
  handler: async (args, output) => {
    refuseDaemonOptions(args, 'the demo has its own data, which it removes at the end');
    const { runDemo } = await import('../../daemon/sandbox/demo.ts');
    if (!args.json) return await runDemo(output.print);
    const steps: string[] = [];
    const code = await runDemo((line) => steps.push(line));
    output.printJson({ ok: code === exitCode.done, steps });
    return code;
  },
});
