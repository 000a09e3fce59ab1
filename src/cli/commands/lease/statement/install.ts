import { defineCommand, positional } from '../../../command.ts';
import { changeKeys, locateSigningDirectory } from '../signing-directory.ts';
import { readTextFile } from '../../../values.ts';

/** Works without a daemon, and a running daemon needs no restart. */
export const command = defineCommand({
  command: 'install <file>',
  describe: 'Install a signed key statement; the private keys that it no longer lists are deleted',
  builder: { file: positional('Statement that lease statement sign has signed', 'file') },
  examples: [
    ['latchkey lease statement install statement-2.jwt', 'at the issuer; a running daemon uses it at once'],
  ],
  handler: async (args, output) => {
    const { directory, ownership } = locateSigningDirectory(args);
    const { installStatement } = await import('../../../../lease/signing-files.ts');
    const text = readTextFile(args.file);
    const { statement, kid, removed } = await changeKeys(`${args.file} was not installed`, () =>
      installStatement(text, directory, Date.now(), ownership),
    );
    const lines = [
      `Version ${statement.version} is installed. ${kid} signs leases from now on; no restart is needed.`,
      ...removed.map((each) => `Deleted the private key ${each}.`),
    ];
    return await output.result(
      { issuer: statement.issuer, version: statement.version, kid, removed },
      lines.join('\n'),
    );
  },
});
