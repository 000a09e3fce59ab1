import { Command } from './command.tsx';
import { Notice } from './notice.tsx';

/** A secret that the daemon shows only once. */
export function Secret({ name, secret }: { name: string; secret: string | undefined }) {
  return (
    <>
      <Notice tone="warn">This is the only time that the {name} is shown. Copy it now.</Notice>
      <Command line={secret ?? ''} />
    </>
  );
}
