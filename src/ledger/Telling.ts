/**
 * Goes on with somebody else's code in this stack, such as a fiber that waited. What it throws is thrown again in a turn of its own,
 * as loud as it was, and takes nothing from whoever else is to be told.
 *
 * @since 0.1.0
 */

/** @category operations @since 0.1.0 */
export const tell = (someone: () => void): void => {
  try {
    someone()
  } catch (defect) {
    queueMicrotask(() => {
      throw defect
    })
  }
}
