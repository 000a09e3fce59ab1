import { Notice } from './notice.tsx';

/** Why a session cannot act, and what to do. */
export function ReadOnlyNotice() {
  return (
    <Notice tone="quiet">
      This session can only look. Sign out, and sign in with <code>latchkey console --admin</code>.
    </Notice>
  );
}
