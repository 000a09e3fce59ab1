import { z } from 'zod';
import { waitingSignInList, type WaitingSignInList } from '../wire/console.ts';
import { type Call } from '../../../cli/client/call.ts';
import { request, requestAndShow } from '../../../cli/client/request.ts';
import {
  CommandError,
  defineCommand,
  type GlobalOptions,
  positionalGroup,
  UsageError,
} from '../../../cli/command.ts';
import { exitCode } from '../../../cli/exit-code.ts';
import { hintFor } from '../../../cli/hint.ts';
import type { Output } from '../../../cli/output.ts';

const path = '/admin/v1/console/sign-ins';

export const command = defineCommand({
  command: 'console [code]',
  describe: 'Open the console in a browser, and let its page in',
  builder: {
    code: { type: 'string', describe: 'The code that the page shows', group: positionalGroup },
    admin: { type: 'boolean', default: false, describe: 'Let the page change things, and show license keys' },
    print: { type: 'boolean', default: false, describe: 'Print the address of the page, and nothing else' },
  },
  examples: [
    ['latchkey console', 'opens the page, and asks whether the code that the page shows is yours'],
    ['latchkey console --admin', 'also lets the page change things'],
    ['latchkey console ABC-DEF', 'lets in the page that shows this code, on another machine or over SSH'],
  ],
  epilogue:
    'Over SSH, forward the port first: ssh -L 8787:127.0.0.1:8787 HOST. Then open the page in your own browser.',
  handler: async (args, output) => {
    if (args.print && (args.admin || args.code !== undefined))
      throw new UsageError('--print lets no page in: leave out --admin and the code');
    if (args.code !== undefined) return await confirm(args, output, args.code);
    const { url } = await readWaiting(args);
    if (args.print) return await output.result({ url }, url);
    if (!process.stdin.isTTY || !process.stderr.isTTY) throw noTerminal(args, url);
    return await ask(args, output, url);
  },
});

type Arguments = GlobalOptions & { readonly admin: boolean };

async function readWaiting(args: GlobalOptions, signal?: AbortSignal): Promise<WaitingSignInList> {
  return (await request(args, { path, signal }, waitingSignInList)).data;
}

function decide(code: string, decision: 'confirm' | 'refuse', form: Call['form'] = {}): Call {
  return { method: 'POST', path: `${path}/${encodeURIComponent(code)}/${decision}`, form };
}

async function confirm(args: Arguments, output: Output, code: string): Promise<number> {
  const rights = args.admin ? 'look at everything, and change everything' : 'look, and change nothing';
  return await requestAndShow(args, output, decide(code, 'confirm', { admin: args.admin }), {
    schema: z.null(),
    show: () => `The page is signed in. It can ${rights}, for at most 12 hours.`,
  });
}

/** Nobody can compare the codes: another page could be let in by mistake. */
function noTerminal(args: GlobalOptions, url: string): CommandError {
  return new CommandError([
    'latchkey: there is no terminal on which to ask whether the code is yours',
    `Open ${url} in a browser, and let the page in: ${hintFor(args)('console CODE')}`,
  ]);
}

/** Opens the page, and asks about each page that waits until one is let in. */
async function ask(args: Arguments, output: Output, url: string): Promise<number> {
  const { openInBrowser } = await import('./browser.ts');
  const { askForCode } = await import('./question.ts');
  output.printError([openInBrowser(url) ? `Opening ${url}` : `Open ${url} in a browser.`]);
  const code = await askForCode({
    waiting: async (signal) => (await readWaiting(args, signal)).sign_ins,
    refuse: async (refused) => {
      await request(args, decide(refused, 'refuse'), z.null());
    },
  });
  if (code === null) throw new CommandError(['latchkey: cancelled'], exitCode.failed);
  return await confirm(args, output, code);
}
