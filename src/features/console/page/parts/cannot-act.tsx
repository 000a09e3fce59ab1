import { useDaemon } from '../daemon.tsx';
import { Notice } from './notice.tsx';

/** Why the page can change nothing now, and what to do. */
export function CannotAct() {
  if (useDaemon().isAway)
    return <Notice tone="warn">The daemon does not answer. Nothing can be changed until it is back.</Notice>;
  return (
    <Notice tone="quiet">
      This session can only look. Sign out, and sign in with <code>latchkey console --admin</code>.
    </Notice>
  );
}
